"""What a task costs, measured on the real thing with one worker; the model knows nothing else.

Processor times are those of the processes themselves, so another load on the machine does not enter
them; the time of a commit is the best of many, for the same reason. What a worker pays that only
hears of tasks is that of one on another queue.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from bench.measure import Effort, percentile
from bench.shared.processes import CORES, Machine, own_s, started_s
from bench.shared.sides import BYSTANDER, CALLERS, Ours, rate
from bench.simulation.model import Costs, Shape, rate_of_batch

_SIZE = "SELECT pg_database_size(current_database())"


@dataclass(slots=True)
class Used:
    """Processor time while something went on, in seconds."""

    changes_s: float = 0.0
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
    spent = [b - a for a, b in zip(before, after, strict=True)]
    (
        used.changes_s, used.database_s, used.workers_s, used.jobs_s, used.bystander_s,
        used.bystander_reads_s, used.caller_s,
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
    count = effort.count(400, quick=80)
    commit_s = await _commit_s(ours)
    with ours.workers(1) as (worker,), ours.bystanders(1) as (bystander,):
        await rate(ours, effort.count(100, quick=30), ours.command)
        size, log = ours.database.ask(_SIZE), ours.database.cost().wal_bytes
        async with watched(ours, [worker.pid], [bystander.pid]) as used:
            await rate(ours, count, ours.command)
        grown = ours.database.ask(_SIZE) - size, ours.database.cost().wal_bytes - log
    costs = Costs(
        commit_s=commit_s,
        changes_s=used.changes_s / count,
        reads_s=(used.database_s - used.changes_s - used.bystander_reads_s) / count,
        worker_s=used.workers_s / count,
        job_s=used.jobs_s / count,
        caller_s=used.caller_s / count,
        bystander_s=used.bystander_s / count,
        bystander_reads_s=used.bystander_reads_s / count,
    )
    costs = replace(costs, turn_s=await _turn_s(effort, ours, costs))
    return Measured(costs, grown[0] / count, grown[1] / count)


async def _turn_s(effort: Effort, ours: Ours, so_far: Costs) -> float:
    """With one place: what of the time for a task the model does not explain by the rest."""
    count = effort.count(40, quick=15)
    with ours.workers(1, at_once=1) as (worker,):
        await rate(ours, 5, ours.command)
        async with watched(ours, [worker.pid]) as used:
            real = await rate(ours, count, ours.command)
    one = Shape(1, 1, one_machine=CORES)
    said = rate_of_batch(so_far.stretched(used.stretch), one, count, callers=CALLERS)
    return max(0.0, 1 / real - 1 / said)


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
