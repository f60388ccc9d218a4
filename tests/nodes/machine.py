"""A worker in the process of a test, where what it does can be looked at, and bent."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from backburner import Backburner, Task
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.runtime.node import Node as Worker
from backburner.runtime.node import Programs, Terms
from backburner.store.postgres.node import open_node
from tests.faults.victims import is_running
from tests.waiting import wait_until_async


@contextlib.asynccontextmanager
async def machine(address: str, folder: Path, silent_s: float = 3) -> AsyncGenerator[Worker]:
    """A worker in this process, which leaves at once; what runs on it goes on."""
    home = Home(folder, address)
    folder.mkdir(exist_ok=True)
    store = await open_node(address, "nd_one")
    terms = Terms(silent_s=silent_s)
    node = Worker(store, home, Settings(), terms=terms, programs=Programs(), report=print)
    running = asyncio.create_task(node.run())
    try:
        yield node
    finally:
        running.cancel()
        await asyncio.wait([running])
        await store.close()


async def left_running(bb: Backburner, home: Path) -> tuple[Task, int]:
    """A command, and its process, whose worker has left."""
    began = home.parent / "began"
    async with machine(bb.home.address, home):
        task = await bb.session("chat").run(f"echo $$ >{began}; exec tail -f {began}")
        await wait_until_async(lambda: began.exists() and began.read_text().strip())
    pid = int(began.read_text())
    assert is_running(pid)
    return task, pid
