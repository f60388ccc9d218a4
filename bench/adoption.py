"""1,000 running jobs, keeper and guardian killed with -9: how long until a new keeper has all.

From the moment that an application opens the home to the record of the last `adopted` event. The
start of the new keeper, about 0.2 s, is part of it. The jobs were started by another process.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import psutil

from backburner import Backburner
from backburner.model.home import Home
from bench.bare import Database
from bench.measure import Effort, Row
from bench.waiting import until
from bench.workspace import pid_of_keeper


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row."""
    home, count = folder / "home", effort.count(1000)
    began = time.perf_counter()
    command = (sys.executable, "-m", "bench.sleepers", str(home), str(count))
    starter = await asyncio.create_subprocess_exec(*command)
    if await starter.wait() != 0:
        raise RuntimeError("the jobs could not be started")
    notes = [f"{count} jobs, started in {time.perf_counter() - began:.1f} s"]

    keeper = pid_of_keeper(home)
    guardian = psutil.Process(keeper).ppid()
    os.kill(keeper, signal.SIGSTOP)  # or the one would replace the other before its turn
    for pid in (guardian, keeper):
        os.kill(pid, signal.SIGKILL)

    opened = time.time()
    async with Backburner.open(home):
        last = await _all_adopted(home, count)
    return [Row(f"adoption of {count} jobs", last - opened, "s", notes=notes)]


async def _all_adopted(home: Path, count: int) -> float:
    """When the last of them was adopted, in seconds since the epoch."""
    database = Database(Home(home).database, "query_only = ON")

    async def all_of_them() -> bool:
        question = "SELECT count(*) FROM event WHERE kind = 'adopted'"
        return database.execute(question).get >= count

    await until(all_of_them, what=f"{count} jobs are adopted", nap=0.2, limit=120)
    last = database.execute("SELECT max(at) FROM event WHERE kind = 'adopted'").get
    database.close()
    return last / 1e6
