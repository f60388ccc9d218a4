"""1,000 running jobs, keeper and guardian killed with -9: how long until a new keeper has all.

From the moment that an application opens the home to the record of the last `adopted` event. The
start of the new keeper, about 0.2 s, is part of it.
"""

import asyncio
import os
import signal
import time
from pathlib import Path

import psutil
from backburner import Backburner
from backburner.model.home import Home

from bench.bare import Database
from bench.measure import Effort, Row
from bench.memory import start_sleepers
from bench.workspace import pid_of_keeper

_TIME_LIMIT_S = 300.0


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row."""
    home, count = folder / "home", effort.count(1000)
    began = time.perf_counter()
    async with Backburner.open(home) as bb:
        await start_sleepers(bb, count, "many", seconds=3600)
    notes = [f"{count} jobs, started in {time.perf_counter() - began:.1f} s"]

    keeper = pid_of_keeper(home)
    guardian = psutil.Process(keeper).ppid()
    for pid in (guardian, keeper):  # in this order, or the one starts the other again
        os.kill(pid, signal.SIGKILL)
    while psutil.pid_exists(keeper):
        await asyncio.sleep(0.01)

    opened = time.time()
    async with Backburner.open(home):
        last = await _all_adopted(home, count)
    return [Row(f"adoption of {count} jobs", last - opened, "s", notes=notes)]


async def _all_adopted(home: Path, count: int) -> float:
    """When the last of them was adopted, in seconds since the epoch."""
    database = Database(Home(home).database, "query_only = ON")
    deadline = time.monotonic() + _TIME_LIMIT_S
    while True:
        adopted, last = database.execute(
            "SELECT count(*), max(at) FROM event WHERE kind = 'adopted'"
        ).get
        if adopted >= count:
            break
        if time.monotonic() > deadline:
            raise RuntimeError(f"{adopted} of {count} were adopted in {_TIME_LIMIT_S:g} s")
        await asyncio.sleep(0.2)
    database.close()
    return last / 1e6
