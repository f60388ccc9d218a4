"""`backburner ls` as a process, next to the same interpreter that does nothing.

In a home with 100 finished tasks and no keeper, printed to a pipe. The interpreter of both is the
one that runs the benchmark, so both read the same site-packages.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from bench.listing import FEW, fill
from bench.measure import Effort, Row, Target, in_turn, percentile

TARGET = Target("at most", 8)
NAME = "`backburner ls`"


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row; without a number where the command does not work."""
    home = folder / "home"
    await fill(home, FEW)
    repeats = effort.count(20, quick=5)
    ls = [str(Path(sys.executable).with_name("backburner")), "ls", "-a", "--all-sessions"]
    environment = {**os.environ, "BACKBURNER_HOME": str(home)}
    if problem := _problem(ls, environment):
        return [Row(NAME, None, "ms", target=TARGET, notes=[f"not run: {problem}"])]

    async def ours() -> float:
        return median_time(ls, environment, repeats)

    async def raw() -> float:
        return median_time([sys.executable, "-c", "pass"], environment, repeats)

    pairs = await in_turn(ours, raw, effort.rounds)
    return [pairs.row(NAME, "ms", scale=1e3, target=TARGET)]


def _problem(command: list[str], environment: dict[str, str]) -> str | None:
    """Why it cannot be measured."""
    try:
        tried = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        return str(error)
    if tried.returncode == 0 and "bg_" in tried.stdout:
        return None
    return (tried.stderr.strip().splitlines() or ["it listed nothing"])[-1]


def median_time(command: list[str], environment: dict[str, str], repeats: int) -> float:
    """How long a process takes, from its start to its end."""
    times: list[float] = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        times.append(time.perf_counter() - began)
    return percentile(times, 0.5)
