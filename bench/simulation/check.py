"""What the model says beside what is: 1, 2 and 4 workers here, then 1, 10 and 100 cells on paper.

And what limits such a cell: what it would carry if something of it were otherwise.

Here everything is on one machine, so the model is given that machine: its cores for the database,
the workers and the callers together, as much of them as others left us in that very round. The
column `raw limit` is the real rate, the ratio is the model's divided by it. The cells have machines
of their own.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from bench.measure import Effort, Row, Target, percentile
from bench.shared.processes import CORES
from bench.shared.sides import CALLERS, WAIT_S, Ours, Start, both, rate
from bench.shared.workers import AT_ONCE
from bench.simulation.measured import Measured, Used, measure, watched
from bench.simulation.model import Cells, Costs, Shape, many_cells, rate_of_batch
from bench.simulation.whatif import at_most, what_ifs

_MACHINES = (1, 2, 4)
_FEW = 4
"""Places of a worker for work that waits."""
_CELL = Shape(workers=8, places=512)
"""Places for more than twice what waits in them, or they would be what is measured."""
_OWNERS_OF_A_CELL = 1000
_TARGET = Target("within", 1.5)
"""Further off, what it says on paper would be no help to who plans."""
LOAD = 0.6
_LARGEST = 0.1
"""What one owner may have of a cell: owners have limits."""
_WORK_S = 2.0


async def run(effort: Effort, folder: Path) -> list[Row]:
    """A row for each number of machines and each load, for each number of cells, and for each

    change of a cell.
    """
    async with both(folder) as (ours, _):
        before = await measure(effort, ours)
        real: list[_Real] = []
        for machines in _MACHINES:
            shape = Shape(machines, AT_ONCE, one_machine=CORES)
            real.append(await _really(ours, shape, "commands", effort.count(500, quick=50)))
        for machines in _MACHINES:
            shape = Shape(machines, _FEW, one_machine=CORES)
            count = effort.count(80 * machines, quick=12 * machines)
            real.append(await _really(ours, shape, "work that waits", count, work_s=WAIT_S))
        after = await measure(effort, ours)
    # Before and after: a processor that others use is not as quick at one time as at another.
    measured = replace(before, costs=before.costs.between(after.costs))
    rows = [_beside(measured.costs, each) for each in real]
    return _costs(measured) + rows + cells(effort, measured.costs)


@dataclass(frozen=True, slots=True)
class _Real:
    """So many tasks that were carried out."""

    name: str
    shape: Shape
    count: int
    work_s: float
    rate: float
    used: Used


async def _really(ours: Ours, shape: Shape, name: str, count: int, *, work_s: float = 0.0) -> _Real:
    start: Start = ours.waiting if work_s else ours.command
    with ours.workers(shape.workers, at_once=shape.places) as workers:
        await rate(ours, max(4 * shape.workers, count // 5), start)
        async with watched(ours, [worker.pid for worker in workers]) as used:
            real = await rate(ours, count, start)
    return _Real(name, shape, count, work_s, real, used)


def _beside(costs: Costs, real: _Real) -> Row:
    """What the model says of the same."""
    used, count = real.used, real.count
    said = rate_of_batch(
        costs.stretched(used.stretch), real.shape, count, callers=CALLERS, work_s=real.work_s
    )
    cost = used.database_s + used.workers_s + used.jobs_s + used.caller_s
    note = (
        f"{used.cores:.2f} of {CORES} cores were there for us; a task took {cost / count * 1e3:.1f}"
        f" ms of them, {used.database_s / count * 1e3:.1f} ms of that in the database"
    )
    name = f"the model: {real.name}, {real.shape.workers} machines"
    ratio = said / real.rate
    return Row(name, said, "/s", raw=real.rate, ratio=ratio, target=_TARGET, notes=[note])


def _costs(measured: Measured) -> list[Row]:
    costs = measured.costs
    times = {
        "the database, for changes, under the lock": costs.changes_s,
        "the database, for all else": costs.reads_s,
        "its worker": costs.worker_s,
        "the processes that the worker starts": costs.job_s,
        "the program that starts it": costs.caller_s,
    }
    of_commits = {
        "the database, under the lock": costs.commit_cpu_s,
        "the worker that has made it": costs.look_s,
        "the database, for the looks of that": costs.look_reads_s,
        "each other worker": costs.bystander_s,
        "the database, for the looks of each of those": costs.bystander_reads_s,
    }
    return [
        *(Row(f"a task costs {name}", each * 1e3, "ms") for name, each in times.items()),
        *(Row(f"a commit costs {name}", each * 1e3, "ms") for name, each in of_commits.items()),
        Row("a commit waits for disk and wire", costs.commit_s * 1e3, "ms"),
        Row("a place waits between two tasks", costs.turn_s * 1e3, "ms"),
        Row("a task takes of the record's disk", measured.disk_bytes / 1024, "KiB"),
        Row("a task takes of the database's log", measured.log_bytes / 1024, "KiB"),
    ]


def cells(effort: Effort, costs: Costs) -> list[Row]:
    """What a cell carries, six tenths of that on 1, 10 and 100 of them, and what if."""
    count = effort.count(4000)
    most = at_most(costs, _CELL, count)
    machines = (
        f"a database with {_CELL.database_cores} cores, {_CELL.workers} workers with "
        f"{_CELL.worker_cores} cores and {_CELL.places} places each; commands that do nothing"
    )
    rows = [Row("on paper: most that one cell carries", most, "/s", notes=[machines])]
    for number, for_s in ((1, 20.0), (10, 5.0), (100, 1.5)):  # many cells need less time
        found = many_cells(
            costs,
            _CELL,
            cells=number,
            tasks_a_second=LOAD * most * number,
            owners=_OWNERS_OF_A_CELL * number,
            largest=_LARGEST,
            work_s=_WORK_S,
            for_s=for_s / 5 if effort.quick else for_s,
        )
        rows.append(_paper(number, found))
    return [*rows, *what_ifs(costs, _CELL, count)]


def _paper(number: int, found: Cells) -> Row:
    waits = ", ".join(
        f"p{share} {percentile(found.waits_s, share / 100) * 1e3:.0f} ms" for share in (50, 99)
    )
    return Row(
        f"on paper: {number} cells",
        found.carried,
        "/s",
        raw=found.offered,
        ratio=found.carried / found.offered,
        notes=[
            f"from call to work {waits}; the busiest cell has {found.hottest:.2f} of the mean load"
        ],
    )
