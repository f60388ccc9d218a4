"""The process of `parked`: `python -m bench.parked_calls COUNT [HOME]`, told in JSON.

With a home they are parked calls of a tool, without one bare tasks of asyncio; both wait for an
event that never comes, and take the time when they are cancelled.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count as numbers

from backburner import Backburner, Session, Task

PER_SESSION = 32
CALLERS = 64
STOPS = 200

_reached: dict[int, float] = {}


async def _wait(number: int) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        _reached[number] = time.perf_counter()


async def ours(count: int, home: str) -> None:
    """Calls that are parked at once."""
    tasks: dict[int, Task] = {}
    async with Backburner.open(home) as bb:

        @bb.tool
        async def wait(number: int) -> None:
            """Wait for ever."""
            await _wait(number)

        async def park(session: Session, number: int) -> None:
            called = await session.invoke("wait", {"number": number}, budget=0)
            tasks[number] = called.task

        await park(bb.session("first"), -1)  # loads and makes what is needed once
        await tasks[-1].stop()
        before, began = _memory(), time.perf_counter()
        mine = numbers()

        async def caller() -> None:
            while (first := next(mine) * PER_SESSION) < count:
                session = bb.session(f"session-{first}")
                for number in range(first, min(first + PER_SESSION, count)):
                    await park(session, number)

        async with asyncio.TaskGroup() as group:
            for _ in range(CALLERS):
                group.create_task(caller())
        parked_in = time.perf_counter() - began
        each = (_memory() - before) / count

        async def stop(number: int) -> None:
            await tasks[number].stop()

        times = await _stops(count, stop)
        began = time.perf_counter()
    _tell(each, times, parked_in, time.perf_counter() - began)


async def bare(count: int) -> None:
    """Tasks of the event loop."""
    before, began = _memory(), time.perf_counter()
    tasks = [asyncio.create_task(_wait(number)) for number in range(count)]
    await asyncio.sleep(0)
    parked_in = time.perf_counter() - began
    each = (_memory() - before) / count

    async def stop(number: int) -> None:
        tasks[number].cancel()
        await asyncio.wait((tasks[number],))

    times = await _stops(count, stop)
    began = time.perf_counter()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    _tell(each, times, parked_in, time.perf_counter() - began)


async def _stops(count: int, stop: Callable[[int], Awaitable[None]]) -> list[float]:
    """From the stop of one to the exception in it, one after another, spread over all."""
    times: list[float] = []
    for number in range(0, count, max(1, count // STOPS)):
        began = time.perf_counter()
        await stop(number)
        times.append(_reached[number] - began)
    return times


def _memory() -> int:
    """What this process holds, in bytes."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _tell(each: float, reached: list[float], parked_in: float, ended_in: float) -> None:
    told = {"bytes_each": each, "reached": reached, "parked_in": parked_in, "ended_in": ended_in}
    print(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(ours(int(sys.argv[1]), sys.argv[2]) if sys.argv[2:] else bare(int(sys.argv[1])))
