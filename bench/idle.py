"""What a keeper costs that has nothing to do: its share of a core, guardian included.

Counted by the scheduler in nanoseconds over all threads, once the home has been quiet for a
moment. No application is open: the keeper is alone.
"""

import asyncio
import contextlib
import os
import time
from pathlib import Path

import psutil

from backburner import Backburner
from bench.measure import Effort, Row, Target, percentile
from bench.workspace import pid_of_keeper

TARGET = Target("at most", 0.5, "%")


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row."""
    seconds = 4.0 if not effort.quick else 2.0
    async with Backburner.open(folder / "home") as bb:
        await (await bb.session("bench").run(["true"])).wait(30)
    keeper = pid_of_keeper(folder / "home")
    guardian = psutil.Process(keeper).ppid()
    await asyncio.sleep(2)
    shares: list[float] = []
    for _ in range(effort.rounds):
        began, before = time.perf_counter(), cpu_seconds(keeper) + cpu_seconds(guardian)
        await asyncio.sleep(seconds)
        used = cpu_seconds(keeper) + cpu_seconds(guardian) - before
        shares.append(100 * used / (time.perf_counter() - began))
    notes = [f"{', '.join(f'{share:.3f}' for share in shares)} % over {seconds:g} s each"]
    return [Row("idle keeper, share of a core", percentile(shares, 0.5), "%", target=TARGET,
                notes=notes)]  # fmt: skip


def cpu_seconds(pid: int) -> float:
    """The time that all threads of a process have run."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with (
            contextlib.suppress(FileNotFoundError),
            open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file,
        ):
            total += int(file.read().split()[0])
    return total / 1e9
