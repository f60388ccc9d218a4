"""`session.invoke` of a tool that does nothing, next to a bare asyncio task that does nothing.

Inside its budget a call costs no disk write: what is left is our own code. The raw limit is what
cannot be left out: a task of the event loop, and a wait for it that ends with the budget.
"""

import asyncio
import time
from pathlib import Path

from backburner import Backburner
from bench.measure import Effort, Row, Target, in_turn

TARGET = Target("at most", 4)
BUDGET_S = 600.0


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row."""
    count = effort.count(5000)

    async def nothing() -> bool:
        return True

    async with Backburner.open(folder / "home") as bb:

        @bb.tool(budget=BUDGET_S)
        async def noop() -> bool:
            """Do nothing."""
            return True

        session = bb.session("bench")

        async def ours() -> float:
            began = time.perf_counter()
            for _ in range(count):
                await session.invoke("noop", {})
            return (time.perf_counter() - began) / count

        async def raw() -> float:
            began = time.perf_counter()
            for _ in range(count):
                task = asyncio.create_task(nothing())
                await asyncio.wait((task,), timeout=BUDGET_S)
                task.result()
            return (time.perf_counter() - began) / count

        called = await session.invoke("noop", {})
        if called.parked or called.result is not True:
            raise RuntimeError(f"the call gave {called}")
        pairs = await in_turn(ours, raw, effort.rounds)
    return [pairs.row("invoke within its budget", "µs", scale=1e6, target=TARGET)]
