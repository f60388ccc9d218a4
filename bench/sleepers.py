"""Many running jobs: `sleep`, over as many sessions as the limit of one asks for.

`python -m bench.sleepers HOME COUNT` starts them from a process of its own, which is then gone.
"""

import asyncio
import sys
from pathlib import Path

from backburner import Backburner, Session
from backburner.model.states import Kind, State
from bench.waiting import until

PER_SESSION = 50

_REST_S = 1.0
"""A job is told to run after the record says that it does."""


async def start_sleepers(bb: Backburner, count: int, *, seconds: int = 3600) -> None:
    """Start so many of them; returns when all run."""

    async def fill(session: Session, number: int) -> None:
        for _ in range(number):
            await session.run(["sleep", str(seconds)], max_runtime=None)

    async with asyncio.TaskGroup() as group:
        for first in range(0, count, PER_SESSION):
            session = bb.session(f"sleepers-{first // PER_SESSION}")
            group.create_task(fill(session, min(PER_SESSION, count - first)))

    async def all_run() -> bool:
        tasks = await bb.store.active(Kind.SHELL)
        return all(task.state is State.RUNNING for task in tasks)

    await until(all_run, what=f"{count} jobs run")
    await asyncio.sleep(_REST_S)


async def _main(home: str, count: str) -> None:
    async with Backburner.open(Path(home)) as bb:
        await start_sleepers(bb, int(count))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
