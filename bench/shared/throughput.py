"""No-op tasks by 64 callers through one worker, 64 at once: ours beside Procrastinate alone.

Both run the same program (`true`) and both wait for its end. Of a task of ours is kept: its row,
three events, a signal for its session, its exit code, its output in the worker's folder and in the
record. Of a job of Procrastinate: its row and three events. Both survive a power cut.
"""

from pathlib import Path

from bench.measure import Effort, Row, Target, in_turn
from bench.shared.sides import both, rate

_AT_LEAST = Target("at least", 0.5)


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row for each kind of work."""
    async with both(folder) as (ours, theirs):
        with ours.workers(1), theirs.workers(1):
            count = effort.count(600)
            pairs = await in_turn(
                lambda: rate(ours, count, ours.command),
                lambda: rate(theirs, count, theirs.command),
                effort.rounds,
            )
            return [pairs.row("commands, beside Procrastinate", "/s", target=_AT_LEAST)]
