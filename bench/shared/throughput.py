"""No-op tasks by 64 callers through one worker, 64 at once: ours beside Procrastinate alone.

Functions run in the worker's event loop, which for ours is a tool of `worker --tools`; commands are
the same program (`true`), for whose end both wait. Of a task of ours is kept: its row, three
events, a signal for its session, its result or exit code, and its output in the worker's folder
and in the record. Of a job of Procrastinate: its row and three events. Both survive a power cut.
"""

from functools import partial
from pathlib import Path

from bench.measure import Effort, Row, Target, in_turn
from bench.shared.sides import both, rate

_AT_LEAST = Target("at least", 0.5)


async def run(effort: Effort, folder: Path) -> list[Row]:
    """One row for each kind of work."""
    rows: list[Row] = []
    async with both(folder) as (ours, theirs):
        with ours.workers(1), theirs.workers(1):
            for name, count, our_work, their_work in (
                ("functions", effort.count(1000), ours.function, theirs.function),
                ("commands", effort.count(600), ours.command, theirs.command),
            ):
                pairs = await in_turn(
                    partial(rate, ours, count, our_work),
                    partial(rate, theirs, count, their_work),
                    effort.rounds,
                )
                rows.append(pairs.row(f"{name}, beside Procrastinate", "/s", target=_AT_LEAST))
    return rows
