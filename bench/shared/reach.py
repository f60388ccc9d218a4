"""Across machines: a stop until nothing runs any more, and the end of a job until its signal.

A caller here, a worker that is another machine, a consumer that is a third. The raw limit (bare.py)
has the same steps with bare connections: durable commits with NOTIFY, each heard by a process that
does what is to be done. Nothing here waits for a clock: an interval would show in p99.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from backburner import Session, State
from bench.ending import consumer, p99_row
from bench.measure import Effort, Row, Target, in_turn, percentile
from bench.shared.bare import bare, command_of_child
from bench.shared.sides import both
from bench.waiting import until

_BEGIN_S = 0.01
_POLL_MS = 2000.0
"""Between the looks that this replaces (E7): half of it passes on average, all of it at worst."""
_P50, _P99 = (Target("at most", passes / 4, "ms") for passes in (_POLL_MS / 2, _POLL_MS))
"""A quarter of that, which no interval of such a length keeps, and a busy machine does."""


async def run(effort: Effort, folder: Path) -> list[Row]:
    """p50 and p99 of both."""
    count = effort.count(50)
    async with both(folder) as (ours, theirs):
        with ours.workers(1), bare(theirs.database.address, folder) as raw:
            session = ours.sessions[0]
            rows = await _compared(
                effort, count, "stop on another machine", lambda: _stop(session), raw.stop
            )
            async with consumer(ours.database.address) as signals:
                session = ours.bb.session("bench")
                rows += await _compared(
                    effort,
                    count,
                    "end on another machine to signal",
                    lambda: _end(session, signals),
                    raw.end,
                )
    return rows


async def _compared(
    effort: Effort,
    count: int,
    name: str,
    ours: Callable[[], Awaitable[float]],
    raw: Callable[[], float],
) -> list[Row]:
    times: tuple[list[float], list[float]] = ([], [])

    async def our_round() -> float:
        took = [await ours() for _ in range(count)]
        times[0].extend(took)
        return percentile(took, 0.5)

    async def raw_round() -> float:
        took = [raw() for _ in range(count)]
        times[1].extend(took)
        return percentile(took, 0.5)

    pairs = await in_turn(our_round, raw_round, effort.rounds)
    return [
        pairs.row(f"{name}, p50", "ms", scale=1e3, target=_P50),
        p99_row(f"{name}, p99", times, count, target=_P99),
    ]


async def _stop(session: Session) -> float:
    """Of a job that ends at TERM."""
    task = await session.run(["sleep", "600"])

    async def sleeps() -> bool:
        pid = (await task.refresh()).record.pid
        return pid is not None and command_of_child(pid) == "sleep"

    await until(sleeps, what="the job sleeps", nap=_BEGIN_S)
    began = time.perf_counter()
    await task.stop()
    took = time.perf_counter() - began
    if task.state is not State.CANCELED:
        raise RuntimeError(f"{task} was not stopped")
    return took


async def _end(session: Session, signals: asyncio.StreamReader) -> float:
    """Of a job whose last act is to print the time."""
    task = await session.run(["date", "+%s%N"])
    task_id, came = (await signals.readline()).decode().split()
    if task_id != task.id:
        raise RuntimeError(f"a signal of {task_id} came, not of {task.id}")
    return (int(came) - int((await task.output()).text)) / 1e9
