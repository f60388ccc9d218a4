"""From the call that hands a task over to the first thing that the task does, one at a time.

A command is `date +%s%N`, for both: it prints when it began; a function says so itself. What lies
in between for ours: a durable commit of the task and its job, the engine's notification, the
worker's fetch, the claim (durable, so that it never runs twice), and of a command the start of a
shell that outlives the worker, in a cgroup of its own. For Procrastinate: a durable commit of the
job, its notification, the fetch, the start of the program. A pause comes before each: neither is
measured while it is still busy with the end of the last one.

To join a cgroup after a pause costs milliseconds of the kernel's own; how many is measured beside.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from backburner.work.process import cgroup
from bench.ending import p99_row
from bench.measure import Effort, Pairs, Row, Target, percentile
from bench.shared.sides import Ours, TheirSide, both
from bench.waiting import until

_COMMAND = ["date", "+%s%N"]
_AT_MOST = Target("at most", 2.0)
_NAP_S = 0.005
_PAUSE_S = 0.03
_BEFORE = 60
"""Of each, before anything is measured: then both databases know how large their tables are."""

Moment = Callable[[], Awaitable[float]]
"""Hands over one task; answers how long it took to begin, in seconds."""


async def run(effort: Effort, folder: Path) -> list[Row]:
    """p50 and p99 of commands and of functions."""
    output = folder / "moment"
    async with both(folder) as (ours, theirs):
        with ours.workers(1), theirs.workers(1):
            commands = (
                lambda: _our_command(ours),
                lambda: _theirs(theirs, output, theirs.app.command(_COMMAND, str(output))),
            )
            functions = (
                lambda: _our_function(ours),
                lambda: _theirs(theirs, output, theirs.app.moment(str(output))),
            )
            for moment in (*commands, *functions):
                for _ in range(effort.count(_BEFORE)):
                    await moment()
            for side in (ours, theirs):
                side.database.grows_up()
            rows = await _compared("a command", effort, *commands)
            rows[0].notes.append(await _joining_a_cgroup(effort.count(30)))
            rows += await _compared("a function", effort, *functions)
    return rows


async def _compared(name: str, effort: Effort, ours: Moment, theirs: Moment) -> list[Row]:
    """A round is so many of each, one of ours and one of theirs in turn: what slows the machine

    down for a second slows both.
    """
    count = effort.count(60)
    times: tuple[list[float], list[float]] = ([], [])
    pairs = Pairs([], [])
    for _ in range(effort.rounds):
        took: tuple[list[float], list[float]] = ([], [])
        for _ in range(count):
            for moment, each in zip((ours, theirs), took, strict=True):
                await asyncio.sleep(_PAUSE_S)
                each.append(await moment())
        for all_times, each, medians in zip(times, took, (pairs.ours, pairs.raw), strict=True):
            all_times.extend(each)
            medians.append(percentile(each, 0.5))
    return [
        pairs.row(f"{name}, hand over to start, p50", "ms", scale=1e3, target=_AT_MOST),
        p99_row(f"{name}, hand over to start, p99", times, count),
    ]


async def _joining_a_cgroup(count: int) -> str:
    """What it costs by itself, with a pause before each as between two commands."""
    family = cgroup.family_folder(secrets.token_hex(6))
    if family is None:
        return "no cgroup can be made here: nothing of it is the joining of one"
    times: list[float] = []
    for number in range(count):
        group = f"{family}/{number}"
        cgroup.make(group)
        process = await asyncio.create_subprocess_exec("sleep", "60")
        await asyncio.sleep(_PAUSE_S)
        began = time.perf_counter()
        await asyncio.to_thread(Path(group, "cgroup.procs").write_text, str(process.pid))
        times.append(time.perf_counter() - began)
        process.kill()
        await process.wait()
        cgroup.remove(group)
    cgroup.remove(family)
    return f"of ours, the joining of a cgroup takes {percentile(times, 0.5) * 1e3:.2f} ms alone"


async def _our_command(ours: Ours) -> float:
    began = time.time_ns()
    task = await ours.sessions[0].run(_COMMAND)
    await task.wait(60)
    return (int((await task.output()).text) - began) / 1e9


async def _our_function(ours: Ours) -> float:
    began = time.time_ns()
    task = await ours.sessions[0].spawn("moment", {})
    await task.wait(60)
    return (task.record.result - began) / 1e9


async def _theirs(theirs: TheirSide, output: Path, hand_over: Awaitable[None]) -> float:
    await asyncio.to_thread(output.unlink, missing_ok=True)
    began = time.time_ns()
    await hand_over

    async def has_ended() -> bool:
        return theirs.rest() == 0

    await until(has_ended, what="the job has ended", nap=_NAP_S)
    return (int(await asyncio.to_thread(output.read_text)) - began) / 1e9
