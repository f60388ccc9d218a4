"""Our round: `python -m bench.peers.ours HOME COUNT`, told in JSON as the peers' rounds are.

64 callers of the public API, each with a session of its own (5 runs a session are allowed, and 64 a
process). The clock stops when the last run has ended and every result.json is in place.
"""

import asyncio
import os
import sys
import time

from backburner import Backburner, Session
from bench.peers.programs.rounds import CALLERS, WARM_UP, tell
from bench.waiting import until


async def main(home: str, count: int) -> None:
    """One round."""
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def noop() -> bool:
            """Do nothing."""
            return True

        sessions = [bb.session(f"caller-{number}") for number in range(CALLERS)]
        await _runs(bb, sessions, WARM_UP)
        began = time.perf_counter()
        await _runs(bb, sessions, count)
        tell(time.perf_counter() - began)


async def _runs(bb: Backburner, sessions: list[Session], count: int) -> None:
    numbers = iter(range(count))
    results: list[str] = []

    async def caller(session: Session) -> None:
        for _ in numbers:
            task = await session.spawn("noop", {})
            await task.wait(60)
            if not task.state.terminal:
                raise RuntimeError(f"{task.id} has not ended")
            results.append(bb.home.attempt(task.id, task.record.attempt).result)

    async with asyncio.TaskGroup() as group:
        for session in sessions:
            group.create_task(caller(session))

    await until(
        lambda: _in_place(results), what="every result.json is in place", nap=0.002, limit=60
    )


async def _in_place(files: list[str]) -> bool:
    while files and os.access(files[-1], os.F_OK):
        files.pop()
    return not files


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
