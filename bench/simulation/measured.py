"""What a task costs, measured on the real thing with one worker; the model knows nothing else.

Processor times are those of the processes themselves, so another load on the machine does not enter
them; the time of a commit is the best of many, for the same reason. Tasks are carried out in a
crowd, where many changes share a commit, and one at a time, where none do: the difference is what a
commit costs. What a worker pays that only hears of commits is that of one on another queue.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from bench.measure import Effort, percentile
from bench.shared.database import FROM_STATEMENTS, SIGNS
from bench.shared.processes import CORES, Machine, own_s, started_s
from bench.shared.sides import BYSTANDER, CALLERS, Ours, rate
from bench.shared.workers import AT_ONCE
from bench.simulation.model import Costs, Shape, Tally, batch, rate_of_batch

_ROUNDS = 3
_LEAST = 0.1
"""Commits of a task more: less tells nothing."""
_ONE_PLACE = Shape(1, 1, one_machine=CORES)
_CROWD = Shape(1, AT_ONCE, one_machine=CORES, bystanders=1)
_SIZE = "SELECT pg_database_size(current_database())"
_COMMITS = f"SELECT coalesce(sum(calls), 0)::float {FROM_STATEMENTS} AND query ~ '{SIGNS}'"


@dataclass(slots=True)
class Used:
    """Processor time while something went on, in seconds."""

    changes_s: float = 0.0
    commits: float = 0.0
    """Of changes; a number, and no time."""
    database_s: float = 0.0
    """With the changes."""
    workers_s: float = 0.0
    jobs_s: float = 0.0
    bystander_s: float = 0.0
    bystander_reads_s: float = 0.0
    caller_s: float = 0.0
    cores: float = float(CORES)
    """That others have left us."""

    @property
    def stretch(self) -> float:
        """How much longer a second of a processor took than it is."""
        return CORES / self.cores


@asynccontextmanager
async def watched(
    ours: Ours, workers: list[int], bystanders: list[int] | None = None
) -> AsyncGenerator[Used]:
    """What everybody uses meanwhile; they must be there before and after."""
    used = Used()

    def look() -> list[float]:
        database = ours.database
        return [
            database.cpu_of("%", writing=True),
            database.ask(_COMMITS),
            database.cost().cpu_s,
            sum(map(own_s, workers)),
            sum(map(started_s, workers)),
            sum(map(own_s, bystanders or [])),
            database.cpu_of(BYSTANDER),
            time.process_time(),
        ]

    before, machine = look(), Machine.now()
    yield used
    after, machine = look(), Machine.now() - machine
    # Who has hung up meanwhile has taken its time along.
    spent = [max(0.0, b - a) for a, b in zip(before, after, strict=True)]
    (
        used.changes_s, used.commits, used.database_s, used.workers_s, used.jobs_s,
        used.bystander_s, used.bystander_reads_s, used.caller_s,
    ) = spent  # fmt: skip
    ours_alone = used.database_s + used.workers_s + used.jobs_s + used.bystander_s + used.caller_s
    used.cores = machine.left_for_us([ours_alone])


@dataclass(frozen=True, slots=True)
class Measured:
    """What a task costs."""

    costs: Costs
    disk_bytes: float
    """Of the record, with its indexes."""
    log_bytes: float
    """Of the database's log."""


async def measure(effort: Effort, ours: Ours) -> Measured:
    """The costs of a command that does nothing."""
    count = effort.count(400, quick=60)
    commit_s = await _commit_s(ours)
    with ours.workers(1) as (worker,), ours.bystanders(1) as (bystander,):
        await rate(ours, effort.count(100, quick=15), ours.command)
        size, log = ours.database.ask(_SIZE), ours.database.cost().wal_bytes
        async with watched(ours, [worker.pid], [bystander.pid]) as used:
            await rate(ours, count, ours.command)
        grown = ours.database.ask(_SIZE) - size, ours.database.cost().wal_bytes - log
    crowd = _Round(_CROWD, _per_task(used, count), count, used.stretch)
    alone, real = await _one_at_a_time(effort, ours)
    spent = crowd.used
    costs = Costs(commit_s, spent.changes_s, spent.workers_s, spent.caller_s, job_s=spent.jobs_s)
    for _ in range(_ROUNDS):
        costs = _fitted(costs, crowd, alone)
    said = rate_of_batch(costs.stretched(alone.stretch), _ONE_PLACE, alone.count, callers=CALLERS)
    costs = replace(costs, turn_s=max(0.0, 1 / real - 1 / said))
    return Measured(costs, grown[0] / count, grown[1] / count)


@dataclass(frozen=True, slots=True)
class _Round:
    """Tasks that were carried out, and what each has used."""

    shape: Shape
    used: Used
    count: int
    stretch: float

    def in_the_model(self, costs: Costs) -> Tally:
        """What happens there."""
        return batch(costs.stretched(self.stretch), self.shape, self.count, callers=CALLERS)[1]


def _fitted(costs: Costs, crowd: _Round, alone: _Round) -> Costs:
    """What a task costs, and what a commit or a look: so that the model uses what was used, in a

    crowd and one at a time. Commits were counted; how many looks there are in each the model says.
    """
    many, single = crowd.in_the_model(costs), alone.in_the_model(costs)
    here, there = crowd.used, alone.used
    looks = many.looks / crowd.count, single.looks / alone.count
    task_changes, each_commit = _line(
        (here.changes_s, there.changes_s), (here.commits, there.commits)
    )
    task_worker, each_look = _line((here.workers_s, there.workers_s), looks)
    task_reads, each_look_reads = _line((here.database_s, there.database_s), looks)
    heard = max(1, many.heard) / crowd.count
    return replace(
        costs,
        changes_s=task_changes,
        commit_cpu_s=each_commit,
        worker_s=task_worker,
        look_s=each_look,
        reads_s=task_reads,
        look_reads_s=each_look_reads,
        bystander_s=min(each_look, here.bystander_s / heard),
        bystander_reads_s=min(each_look_reads, here.bystander_reads_s / heard),
    )


def _line(used: tuple[float, float], times: tuple[float, float]) -> tuple[float, float]:
    """Of the task itself, and of each time: so that both are right, in a crowd and alone.

    Where that says that a task gives something back, it is nothing, and the crowd is right: there
    a database finds its limits.
    """
    (crowded, alone), (few, much) = used, times
    each = max(0.0, alone - crowded) / max(_LEAST, much - few)
    if each * few > crowded:
        each = crowded / few
    return crowded - each * few, each


def _per_task(used: Used, count: int) -> Used:
    """Of the database here: what is neither a change nor a bystander's."""
    reads_s = used.database_s - used.changes_s - used.bystander_reads_s
    return Used(
        changes_s=used.changes_s / count,
        commits=used.commits / count,
        database_s=reads_s / count,
        workers_s=used.workers_s / count,
        jobs_s=used.jobs_s / count,
        caller_s=used.caller_s / count,
        bystander_s=used.bystander_s / count,
        bystander_reads_s=used.bystander_reads_s / count,
    )


async def _one_at_a_time(effort: Effort, ours: Ours) -> tuple[_Round, float]:
    """With one place; and how many tasks there are a second."""
    count = effort.count(200, quick=15)
    with ours.workers(1, at_once=1) as (worker,):
        await rate(ours, 5, ours.command)
        async with watched(ours, [worker.pid]) as used:
            real = await rate(ours, count, ours.command)
    return _Round(_ONE_PLACE, _per_task(used, count), count, used.stretch), real


async def _commit_s(ours: Ours) -> float:
    """One small durable change, alone: what of it is not processor time of the database."""

    async def change() -> None:
        await ours.bb.set_queue("elsewhere", 1)

    cost = ours.database.cost
    before, times = cost().cpu_s, await _times(change, 200)
    processor = (cost().cpu_s - before) / len(times)
    return max(1e-4, percentile(times, 0.1) - processor)


async def _times(change: Callable[[], Awaitable[None]], count: int) -> list[float]:
    times: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await change()
        times.append(time.perf_counter() - began)
        await asyncio.sleep(0)
    return times
