"""A job that writes 2 GB, next to the same command redirected to a file by a shell.

Both are timed from the start to the end of the command as its caller sees it. Another process
looks at the disk use of both files every two milliseconds, so that both pay for that.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from backburner import Backburner
from backburner.model.home import Home
from backburner.model.ids import new_id
from bench.measure import Effort, Pairs, Row, Target, in_turn

TARGET = Target("at most", 1.1)
MB = 1_000_000

_WATCH_DISK = """
import os, select, sys
peak = 0
while not select.select([0], [], [], 0.002)[0]:  # until its standard input is closed
    try:
        peak = max(peak, os.stat(sys.argv[1]).st_blocks * 512)
    except FileNotFoundError:
        pass
print(peak)
"""


async def run(effort: Effort, folder: Path) -> list[Row]:
    """The time, the peak and the final use of the disk."""
    blocks = effort.count(2**14)
    command = ["dd", "if=/dev/zero", "bs=128k", f"count={blocks}", "status=none"]
    size = blocks * 2**17
    finals: list[int] = []
    peaks_ours: list[float] = []
    peaks_raw: list[float] = []

    async with Backburner.open(folder / "home") as bb:
        session = bb.session("bench")

        async def ours() -> float:
            task_id = new_id()
            log = Home(folder / "home").attempt(task_id, 1).log
            async with _peak_of(Path(log), peaks_ours):
                began = time.perf_counter()
                task = await (await session.run(command, id=task_id)).wait(600)
                took = time.perf_counter() - began
            if task.record.output_bytes != size:
                raise RuntimeError(f"{task.record.output_bytes} of {size} bytes were recorded")
            finals.append(os.stat(log).st_blocks * 512)
            return took

        async def raw() -> float:
            path = folder / "raw.log"
            shell = ["/bin/sh", "-c", '"$@" > "$0"', str(path), *command]
            async with _peak_of(path, peaks_raw):
                began = time.perf_counter()
                await asyncio.to_thread(subprocess.run, shell, check=True)
                took = time.perf_counter() - began
            path.unlink()
            return took

        pairs = await in_turn(ours, raw, effort.rounds)
    peaks = Pairs(peaks_ours[1:], peaks_raw[1:])
    rate = size / MB / sorted(pairs.ours)[len(pairs.ours) // 2]
    return [
        pairs.row(
            f"output, {size / 1e9:.1f} GB", "s", target=TARGET, notes=[f"ours {rate:,.0f} MB/s"]
        ),
        peaks.row("output, peak disk use", "MB", scale=1 / MB),
        Row(
            "output, final disk use",
            max(finals) / MB,
            "MB",
            raw=size / MB,
            ratio=max(finals) / size,
        ),
    ]


@contextlib.asynccontextmanager
async def _peak_of(path: Path, peaks: list[float]) -> AsyncGenerator[None]:
    """Look at the disk use of a file from another process, and note the most that it saw."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-c", _WATCH_DISK, str(path))
    watcher = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    try:
        yield
    finally:
        said, _ = await watcher.communicate(b"")  # closes its standard input
        peaks.append(float(said))
