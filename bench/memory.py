"""What a running task costs the keeper: growth of its memory with 500 running `sleep` jobs.

PSS counts pages that are shared with other processes by their share, RSS in full; both are
printed, the larger one has the target. The keeper has run some jobs before, so that what it
needs once (code, caches) is not counted.
"""

from pathlib import Path

from backburner import Backburner
from backburner.model.states import Kind
from bench.measure import Effort, Row, Target
from bench.sleepers import start_sleepers
from bench.waiting import until
from bench.workspace import pid_of_keeper

TARGET = Target("at most", 64, "KB")
_FIRST = 5


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row."""
    count = effort.count(500)
    async with Backburner.open(folder / "home") as bb:

        async def nothing_left() -> bool:
            return not await bb.store.active(Kind.SHELL)

        await start_sleepers(bb, _FIRST, seconds=1)
        await until(nothing_left, what="the first jobs have ended")
        keeper = pid_of_keeper(folder / "home")
        before = _memory_kb(keeper)
        await start_sleepers(bb, count)
        after = _memory_kb(keeper)
    grown = {name: (after[name] - before[name]) / count for name in before}
    notes = [
        f"{name}: {before[name]:,} KB before, {after[name]:,} KB with {count} jobs,"
        f" {grown[name]:.1f} KB each"
        for name in before
    ]
    return [Row("keeper memory per task", max(grown.values()), "KB", target=TARGET, notes=notes)]


def _memory_kb(pid: int) -> dict[str, int]:
    """RSS and PSS of a process, in KB."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line.split(" ", 1)[0])
    return {name: int(fields[name].split()[0]) for name in ("Rss", "Pss")}
