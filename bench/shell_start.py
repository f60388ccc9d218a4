"""`true` as a shell task, 16 callers, each to its end, next to a bare detached subprocess.

The raw limit starts a shell in a session of its own that runs the command and writes its exit
code to a file: no record, no log, nothing that outlives a crash. Both run the program by its
path, because `true` is built into shells and would be no process at all in one of the two.
"""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from backburner import Backburner, Session
from bench.measure import Effort, Row, Target, in_turn
from bench.throughput import rate

CALLERS = 16
TARGET = Target("at least", 0.4)
TRUE = shutil.which("true") or "/bin/true"

_SCRIPT = '"$@"; echo $? > "$0"'


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row."""
    count = effort.count(320)
    numbers = iter(range(1_000_000))
    (folder / "bare").mkdir()
    async with Backburner.open(folder / "home") as bb:
        session = bb.session("bench")
        with ThreadPoolExecutor(CALLERS) as pool:

            async def ours() -> float:
                return await rate(count, lambda _: shell_task(session), CALLERS)

            async def raw() -> float:
                return await asyncio.to_thread(_bare_rate, pool, folder / "bare", count, numbers)

            pairs = await in_turn(ours, raw, effort.rounds)
    return [pairs.row(f"shell `true`, {CALLERS} callers", "/s", target=TARGET)]


async def shell_task(session: Session) -> None:
    """Started and waited for."""
    task = await (await session.run([TRUE])).wait(60)
    if task.exit_code != 0:
        raise RuntimeError(f"{task.id} ended with {task.exit_code}: {task.error}")


def _bare_rate(pool: ThreadPoolExecutor, folder: Path, count: int, numbers: Iterator[int]) -> float:
    paths = [folder / f"{next(numbers)}" for _ in range(count)]
    began = time.perf_counter()
    list(pool.map(_bare_job, paths))
    return count / (time.perf_counter() - began)


def _bare_job(exit_file: Path) -> None:
    subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT, str(exit_file), TRUE],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ).wait()
    if exit_file.read_text() != "0\n":
        raise RuntimeError(f"{exit_file} has no exit code")
