"""What a task costs, measured on the real thing with one worker; the model knows nothing else.

Processor times are those of the processes themselves, so another load on the machine does not enter
them; the time of a commit is the best of many, for the same reason.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench.measure import Effort, percentile
from bench.shared.sides import CALLERS, Ours, rate
from bench.simulation.model import Costs, Shape, rate_of_batch

_SIZE = "SELECT pg_database_size(current_database())"
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Measured:
    """What a task costs, and what of this machine there was for it."""

    costs: Costs
    cores: float
    """That we had at work while there was more to do than they could: on a machine that others use
    too, fewer than it has."""
    disk_bytes: float
    """Of the record, with its indexes."""
    log_bytes: float
    """Of the database's log."""

    def here(self) -> Costs:
        """The same where each second of a processor takes longer, because others use it too."""
        stretch = max(1.0, (os.cpu_count() or 1) / self.cores)
        return replace(
            self.costs,
            database_s=self.costs.database_s * stretch,
            worker_s=self.costs.worker_s * stretch,
            caller_s=self.costs.caller_s * stretch,
        )


async def measure(effort: Effort, ours: Ours) -> Measured:
    """The costs of a command that does nothing."""
    count = effort.count(400, quick=80)
    commit_s = await _commit_s(ours)
    with ours.workers(1) as (worker,):
        await rate(ours, effort.count(100, quick=30), ours.command)
        size, log = ours.database.ask(_SIZE), ours.database.cost().wal_bytes
        before = ours.database.cost().cpu_s, _process_s(worker.pid), time.process_time()
        began = time.perf_counter()
        await rate(ours, count, ours.command)
        took = time.perf_counter() - began
        after = ours.database.cost().cpu_s, _process_s(worker.pid), time.process_time()
    used = [b - a for a, b in zip(before, after, strict=True)]
    database_s, worker_s, caller_s = (each / count for each in used)
    costs = Costs(commit_s, database_s, worker_s, caller_s)
    grown = ours.database.ask(_SIZE) - size, ours.database.cost().wal_bytes - log
    found = Measured(costs, sum(used) / took, grown[0] / count, grown[1] / count)
    return replace(found, costs=replace(costs, turn_s=await _turn_s(effort, ours, found)))


async def _turn_s(effort: Effort, ours: Ours, so_far: Measured) -> float:
    """With one place: what of the time for a task the model does not explain by the rest."""
    count = effort.count(40, quick=15)
    with ours.workers(1, at_once=1):
        await rate(ours, 5, ours.command)
        real = await rate(ours, count, ours.command)
    one = Shape(1, 1, one_machine=os.cpu_count() or 1)
    said = rate_of_batch(so_far.here(), one, count, callers=CALLERS)
    return max(0.0, 1 / real - 1 / said)


async def _commit_s(ours: Ours) -> float:
    """One small durable change, alone: what of it is not processor time of the database."""

    async def change() -> None:
        await ours.bb.set_queue("measured", 1)

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


def _process_s(pid: int) -> float:
    """Of a process and of those of its children that have ended and were waited for."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat[stat.rindex(")") + 2 :].split()
    return sum(int(field) for field in fields[11:15]) * _TICK_S
