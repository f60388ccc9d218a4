"""From `session.spawn` to the first line of the tool, next to a bare insert and asyncio task.

One caller; the run before has ended. Ours is on disk, with its event, before the tool begins, and
so is the row of the raw limit before its task is made.
"""

import asyncio
import time
from pathlib import Path

from backburner import Backburner
from backburner.model.ids import new_id
from bench import bare
from bench.measure import Effort, Row, in_turn, milliseconds, percentile

_SPEC = '{"tool":"stamp","arguments":{},"reference":null,"log":[262144,1048576],"depth":0}'


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row."""
    count = effort.count(200, quick=20)
    connection = bare.connect(folder / "bare.db")
    times: list[float] = []
    reached = 0.0

    async def mark() -> None:
        nonlocal reached
        reached = time.perf_counter()

    async with Backburner.open(folder / "home") as bb:

        @bb.tool(background=True)
        async def stamp() -> bool:
            """Take the time."""
            await mark()
            return True

        session = bb.session("bench")

        async def ours() -> float:
            took: list[float] = []
            for _ in range(count):
                began = time.perf_counter()
                task = await session.spawn("stamp", {})
                await task.wait(30)
                took.append(reached - began)
            times.extend(took)
            return percentile(took, 0.5)

        async def raw() -> float:
            took: list[float] = []
            for _ in range(count):
                now = time.time_ns() // 1000
                began = time.perf_counter()
                values = (new_id(), "local", "bench", "tool", "stamp", _SPEC, now)
                connection.execute(bare.INSERT, values)
                await asyncio.create_task(mark())
                took.append(reached - began)
            return percentile(took, 0.5)

        pairs = await in_turn(ours, raw, effort.rounds)
    connection.close()
    name = "spawn to the tool's first line"
    return [pairs.row(name, "ms", scale=1e3, notes=[milliseconds(times)])]
