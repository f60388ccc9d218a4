"""From `session.run(["true"])` to its durable id, next to one bare durable insert.

Three rows, because the keeper, once told, takes the same lock, disk and cores:
at rest      the keeper has seen to the task before; the next start waits for that. What one
             start costs a caller, and what the target is about
frozen       the keeper is stopped (SIGSTOP), so that nothing but the start itself runs
back to back the next start comes at once, while the keeper carries out the ones before: for
             each start it makes three durable commits of its own through the same lock
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from backburner import Backburner, Session, Task
from backburner.model.ids import new_id
from bench import bare
from bench.measure import Effort, Row, Target, in_turn, milliseconds, percentile
from bench.waiting import until
from bench.workspace import pid_of_keeper

TARGET = Target("at most", 2)
PER_SESSION = 50
"""Below the limit of active tasks of one session."""

_REST_S = 0.005
"""After the end of a task the keeper still writes `result.json` and tidies up."""


async def run(effort: Effort, folder: Path) -> list[Row]:
    """The three rows."""
    count = effort.count(100, quick=20)
    connection = bare.connect(folder / "bare.db")
    async with Backburner.open(folder / "home") as bb:
        sessions = _sessions(bb)
        await (await sessions().run(["true"])).wait(30)  # starts the keeper
        at_rest = await _at_rest(sessions(), connection, effort.rounds, count)

        async def ours() -> float:
            times.extend(took := [(await _timed_start(sessions()))[1] for _ in range(count)])
            return percentile(took, 0.5)

        async def raw() -> float:
            return percentile([_timed_insert(connection) for _ in range(count)], 0.5)

        times: list[float] = []
        busy = (await in_turn(ours, raw, effort.rounds)).row(
            "start, back to back", "ms", scale=1e3, notes=[milliseconds(times)]
        )
        await _until_quiet(bb)
        keeper = pid_of_keeper(folder / "home")
        times.clear()
        os.kill(keeper, signal.SIGSTOP)
        try:
            frozen = (await in_turn(ours, raw, effort.rounds)).row(
                "start, keeper frozen",
                "ms",
                scale=1e3,
                target=TARGET,
                notes=[milliseconds(times)],
            )
        finally:
            os.kill(keeper, signal.SIGCONT)
    connection.close()
    return [at_rest, frozen, busy]


async def _at_rest(session: Session, connection: bare.Database, rounds: int, count: int) -> Row:
    """One start and one insert in turn, with the same rest before each."""
    times: list[float] = []
    raw_times: list[float] = []

    async def ours() -> float:
        raw_times.clear()
        took: list[float] = []
        for _ in range(count):
            task, seconds = await _timed_start(session)
            took.append(seconds)
            await task.wait(30)
            await asyncio.sleep(_REST_S)
            raw_times.append(_timed_insert(connection))
            await asyncio.sleep(_REST_S)
        times.extend(took)
        return percentile(took, 0.5)

    async def raw() -> float:
        return percentile(raw_times, 0.5)

    pairs = await in_turn(ours, raw, rounds)
    return pairs.row(
        "start, keeper at rest", "ms", scale=1e3, target=TARGET, notes=[milliseconds(times)]
    )


async def _timed_start(session: Session) -> tuple[Task, float]:
    began = time.perf_counter()
    task = await session.run(["true"])
    return task, time.perf_counter() - began


def _timed_insert(connection: bare.Database) -> float:
    spec = json.dumps(
        {
            "command": ["true"],
            "cwd": os.getcwd(),
            "env": {},
            "separate_stderr": False,
            "log": [262144, 1048576],
        }
    )
    values = (new_id(), "local", "session", "shell", "true", spec, time.time_ns() // 1000)
    began = time.perf_counter()
    connection.execute(bare.INSERT, values)
    return time.perf_counter() - began


def _sessions(bb: Backburner) -> Callable[[], Session]:
    """A session for the next start: a new one before the limit of the last is reached."""
    started = 0

    def next_session() -> Session:
        nonlocal started
        started += 1
        return bb.session(f"start-{started // PER_SESSION}")

    return next_session


async def _until_quiet(bb: Backburner) -> None:
    """Wait until the keeper has nothing left: frozen in a commit it would hold the lock."""

    async def nothing_left() -> bool:
        return not await bb.store.active()

    await until(nothing_left, what="every task has ended")
    await asyncio.sleep(0.5)
