"""What the model says beside what is: 1, 2 and 4 workers here, then 1, 10 and 100 cells on paper.

Here everything is on one machine, so the model is given that machine: its cores for the database,
the workers and the callers together, as much of them as we had with one worker. The column `raw
limit` is the real rate, the ratio is the model's divided by it. The cells have machines of their
own.
"""

import os
from pathlib import Path

from bench.measure import Effort, Row, percentile
from bench.shared.sides import CALLERS, WAIT_S, Ours, both, rate
from bench.shared.workers import AT_ONCE
from bench.simulation.measured import measure
from bench.simulation.model import Cells, Costs, Shape, many_cells, rate_of_batch

_MACHINES = (1, 2, 4)
_FEW = 4
"""Places of a worker for work that waits."""
_CELL = Shape(workers=8, places=64)
_OWNERS_OF_A_CELL = 1000
_LOAD = 0.6
_LARGEST = 0.1
"""What one owner may have of a cell: owners have limits."""
_WORK_S = 2.0


async def run(effort: Effort, folder: Path) -> list[Row]:
    """A row for each number of machines and each load, and one for each number of cells."""
    rows: list[Row] = []
    async with both(folder) as (ours, _):
        measured = await measure(effort, ours)
        here, costs = measured.here(), measured.costs
        rows += [await _commands(effort, ours, here, machines) for machines in _MACHINES]
        rows += [await _waiting(effort, ours, here, machines) for machines in _MACHINES]
    rows[0].notes.append(
        f"a task costs the database {costs.database_s * 1e3:.2f} ms of its processor, its worker "
        f"{costs.worker_s * 1e3:.2f} ms, its caller {costs.caller_s * 1e3:.2f} ms; a commit waits "
        f"{costs.commit_s * 1e3:.2f} ms, a place {costs.turn_s * 1e3:.0f} ms "
        f"between two tasks; {measured.cores:.2f} cores were ours; "
        f"a task takes {measured.disk_bytes / 1024:.1f} KiB of the record and "
        f"{measured.log_bytes / 1024:.1f} KiB of the database's log"
    )
    return rows + cells(effort, costs)


async def _commands(effort: Effort, ours: Ours, costs: Costs, machines: int) -> Row:
    count = effort.count(600)
    with ours.workers(machines):
        await rate(ours, effort.count(100), ours.command)
        real = await rate(ours, count, ours.command)
    here = Shape(machines, AT_ONCE, one_machine=os.cpu_count() or 1)
    said = rate_of_batch(costs, here, count, callers=CALLERS)
    return _row(f"commands, {machines} machines", said, real)


async def _waiting(effort: Effort, ours: Ours, costs: Costs, machines: int) -> Row:
    count = effort.count(40 * machines)
    with ours.workers(machines, at_once=_FEW):
        real = await rate(ours, count, ours.waiting)
    here = Shape(machines, _FEW, one_machine=os.cpu_count() or 1)
    said = rate_of_batch(costs, here, count, callers=CALLERS, work_s=WAIT_S)
    return _row(f"work that waits, {machines} machines", said, real)


def _row(name: str, said: float, real: float) -> Row:
    return Row(f"the model: {name}", said, "/s", raw=real, ratio=said / real)


def cells(effort: Effort, costs: Costs) -> list[Row]:
    """A load that a cell bears at six tenths of what it could, on 1, 10 and 100 of them."""
    most = rate_of_batch(costs, _CELL, effort.count(20_000), callers=2000)
    for_s = 3.0 if effort.quick else 30.0
    machines = (
        f"a database with {_CELL.database_cores} cores, {_CELL.workers} workers with "
        f"{_CELL.worker_cores} cores and {_CELL.places} places each; commands that do nothing"
    )
    rows = [Row("on paper: most that one cell carries", most, "/s", notes=[machines])]
    for number in (1, 10, 100):
        found = many_cells(
            costs,
            _CELL,
            cells=number,
            tasks_a_second=_LOAD * most * number,
            owners=_OWNERS_OF_A_CELL * number,
            largest=_LARGEST,
            work_s=_WORK_S,
            for_s=for_s,
        )
        rows.append(_paper(number, found))
    return rows


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
