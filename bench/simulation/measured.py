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
from bench.shared.processes import CORES, Machine, own_s, started_s
from bench.shared.sides import BYSTANDER, CALLERS, Ours, rate
from bench.simulation.model import Costs, Shape, rate_of_batch

_COMMITS = "SELECT coalesce(sum(number), 0) FROM backburner.commitment"
_CALLERS_COMMITS = r"""
    SELECT coalesce(max(number), 0) FROM backburner.commitment WHERE writer = (
        SELECT max(substring(query FROM 'INTO commitment .*VALUES \(.([0-9a-f]+)'))
        FROM pg_stat_activity WHERE application_name = 'caller')"""
"""What a connection that writes has said last is its commit, with the name of the writer."""
_LEAST = 0.1
"""Commits of a task more: less tells nothing."""
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
    commits: float = 0.0
    workers_commits: float = 0.0
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
            every := float(ours.database.ask(_COMMITS)),
            every - float(ours.database.ask(_CALLERS_COMMITS)),
        ]

    before, machine = look(), Machine.now()
    yield used
    after, machine = look(), Machine.now() - machine
    spent = [b - a for a, b in zip(before, after, strict=True)]
    (
        used.changes_s, used.database_s, used.workers_s, used.jobs_s, used.bystander_s,
        used.bystander_reads_s, used.caller_s, used.commits, used.workers_commits,
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
    crowd = _per_task(used, count)
    alone, real, stretch = await _one_at_a_time(effort, ours)
    looks = max(_LEAST, alone.workers_commits - crowd.workers_commits)
    commits = max(_LEAST, alone.commits - crowd.commits)
    look_s = max(0.0, alone.workers_s - crowd.workers_s) / looks
    look_reads_s = max(0.0, alone.database_s - crowd.database_s) / looks
    commit_cpu_s = max(0.0, alone.changes_s - crowd.changes_s) / commits
    costs = Costs(
        commit_s=commit_s,
        changes_s=max(0.0, crowd.changes_s - commit_cpu_s * crowd.commits),
        reads_s=max(0.0, crowd.database_s - look_reads_s * crowd.workers_commits),
        worker_s=max(0.0, crowd.workers_s - look_s * crowd.workers_commits),
        job_s=crowd.jobs_s,
        caller_s=crowd.caller_s,
        commit_cpu_s=commit_cpu_s,
        look_s=look_s,
        look_reads_s=look_reads_s,
        bystander_s=used.bystander_s / used.commits,
        bystander_reads_s=used.bystander_reads_s / used.commits,
    )
    one = Shape(1, 1, one_machine=CORES)
    said = rate_of_batch(costs.stretched(stretch), one, _few(effort), callers=CALLERS)
    costs = replace(costs, turn_s=max(0.0, 1 / real - 1 / said))
    return Measured(costs, grown[0] / count, grown[1] / count)


def _per_task(used: Used, count: int) -> Used:
    """Of the database here: what is neither a change nor a bystander's."""
    reads_s = used.database_s - used.changes_s - used.bystander_reads_s
    return Used(
        changes_s=used.changes_s / count,
        database_s=reads_s / count,
        workers_s=used.workers_s / count,
        jobs_s=used.jobs_s / count,
        caller_s=used.caller_s / count,
        commits=used.commits / count,
        workers_commits=used.workers_commits / count,
    )


def _few(effort: Effort) -> int:
    return effort.count(60, quick=20)


async def _one_at_a_time(effort: Effort, ours: Ours) -> tuple[Used, float, float]:
    """With one place: what a task costs, how many there are a second, and the stretch then."""
    count = _few(effort)
    with ours.workers(1, at_once=1) as (worker,):
        await rate(ours, 5, ours.command)
        async with watched(ours, [worker.pid]) as used:
            real = await rate(ours, count, ours.command)
    return _per_task(used, count), real, used.stretch


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
