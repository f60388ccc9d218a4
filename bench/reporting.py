"""`backburner status` and `progress` as a script calls them in a loop: a process for each call.

Next to the same interpreter that does nothing. No keeper reads what is reported: a call ends when
its line is in the file. Most of what is above 1 is `re`, which the script that pip makes loads.
"""

import os
import sys
from pathlib import Path

from bench.command import median_time
from bench.measure import Effort, Row, Target, in_turn

TARGET = Target("at most", 2.5)

CALLS = {
    "`backburner status`": ("status", "compiling"),
    "`backburner progress`": ("progress", "3", "10", "--unit", "files"),
}


async def run(effort: Effort, folder: Path) -> list[Row]:
    """A row for each command."""
    program = str(Path(sys.executable).with_name("backburner"))
    report = folder / "report"
    environment = {**os.environ, "BACKBURNER_REPORT": str(report)}
    repeats = effort.count(20, quick=5)
    rows: list[Row] = []
    for name, arguments in CALLS.items():
        command = [program, *arguments]

        async def ours(command: list[str] = command) -> float:
            return median_time(command, environment, repeats)

        async def raw() -> float:
            return median_time([sys.executable, "-c", "pass"], environment, repeats)

        pairs = await in_turn(ours, raw, effort.rounds)
        rows.append(pairs.row(name, "ms", scale=1e3, target=TARGET))
    lines = len(report.read_bytes().splitlines())
    expected = (effort.rounds + 1) * repeats * len(CALLS)
    if lines != expected:
        raise RuntimeError(f"{lines} lines were reported, not {expected}")
    return rows
