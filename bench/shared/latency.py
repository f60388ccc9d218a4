"""From the call that hands a task over to the first thing that the task does, one at a time.

The task is `date +%s%N`, for both: it prints when it began. What lies in between for ours: a
durable commit of the task and its job, the engine's notification, the worker's fetch, the claim
(durable, so that it never runs twice), and the start of a shell that outlives the worker. For
Procrastinate: a durable commit of the job, its notification, the fetch, the start of the program.
"""

import asyncio
import time
from pathlib import Path

from bench.ending import p99_row
from bench.measure import Effort, Row, Target, in_turn, percentile
from bench.shared.sides import Ours, TheirSide, both
from bench.waiting import until

_COMMAND = ["date", "+%s%N"]
_AT_MOST = Target("at most", 2.0)
_NAP_S = 0.005


async def run(effort: Effort, folder: Path) -> list[Row]:
    """p50 and p99."""
    count = effort.count(60)
    times: tuple[list[float], list[float]] = ([], [])
    async with both(folder) as (ours, theirs):
        with ours.workers(1), theirs.workers(1):

            async def our_round() -> float:
                took = [await _ours(ours) for _ in range(count)]
                times[0].extend(took)
                return percentile(took, 0.5)

            async def their_round() -> float:
                took = [await _theirs(theirs, folder) for _ in range(count)]
                times[1].extend(took)
                return percentile(took, 0.5)

            pairs = await in_turn(our_round, their_round, effort.rounds)
    return [
        pairs.row("hand over to start, p50", "ms", scale=1e3, target=_AT_MOST),
        p99_row("hand over to start, p99", times, count),
    ]


async def _ours(ours: Ours) -> float:
    began = time.time_ns()
    task = await ours.sessions[0].run(_COMMAND)
    await task.wait(60)
    return (int((await task.output()).text) - began) / 1e9


async def _theirs(theirs: TheirSide, folder: Path) -> float:
    output = folder / "moment"
    output.unlink(missing_ok=True)
    began = time.time_ns()
    await theirs.app.command(_COMMAND, str(output))

    async def has_ended() -> bool:
        return theirs.rest() == 0

    await until(has_ended, what="the job has ended", nap=_NAP_S)
    return (int(await asyncio.to_thread(output.read_text)) - began) / 1e9
