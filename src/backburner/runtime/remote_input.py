"""Input for commands on other machines: a sender waits for what became of it, a node hands it on.

A piece is in the record before its sender waits, and has a number that the holder of the command
knows: a node that dies between handing it on and saying so does it again, and the job reads it
once.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from backburner.model.errors import (
    BackburnerError,
    InputNotYet,
    InputRefused,
    LimitReached,
    TimeIsUp,
)
from backburner.model.events import OVER
from backburner.model.home import Home
from backburner.model.task import Task
from backburner.store.news import Subject, about
from backburner.store.postgres.inputs import PIECE_MAX_BYTES, Piece
from backburner.store.postgres.node import NodeStore
from backburner.store.postgres.store import PostgresStore
from backburner.store.protocol import Scope
from backburner.work import input as job_input

_PATIENCE_S = 30.0
"""For the node to hand it on: longer than a job may take to read."""
_STARTS_S = 10.0
_LOOK_AGAIN_S = 0.1
_AT_ONCE = 8
"""Jobs of a node that input is given to at the same time."""

_ERRORS = {each.code: each for each in (InputNotYet, InputRefused, LimitReached, TimeIsUp)}


async def give(store: PostgresStore, task: Task, data: bytes | None) -> None:
    """Give this to the input of a running task; None is its end. Raises what `work.input` does."""
    scope = Scope(task.owner, task.session)
    if data is None:
        await _give_piece(store, task, scope, None)
        return
    for start in range(0, len(data), PIECE_MAX_BYTES):
        try:
            await _give_piece(store, task, scope, data[start : start + PIECE_MAX_BYTES])
        except BackburnerError as error:
            if start:
                error.message += f"; the first {start:,} of {len(data):,} bytes were taken"
                error.args = (error.message,)
            raise


async def _give_piece(store: PostgresStore, task: Task, scope: Scope, data: bytes | None) -> None:
    bell = asyncio.Event()
    handed_on = about(Subject.INPUT)
    unsubscribe = store.on_change(
        bell.set, lambda news: handed_on(news) or task.id in news.of(*OVER)
    )
    try:
        number = await store.send_input(task.id, task.attempt, scope, data)
        if number is None:
            raise await _why_not(store, task)
        outcome = await _outcome(store, task, number, scope, bell)
    finally:
        unsubscribe()
    if outcome is None:
        if not await _goes_on(store, task):
            raise await _why_not(store, task)
        raise TimeIsUp(
            f"the worker of {task.id} has not said after {_PATIENCE_S:g} s that it handed this on",
            remedy="look at its output before you send it again; backburner doctor shows workers",
        )
    if outcome:
        said = json.loads(outcome)
        raise _ERRORS.get(said["code"], InputRefused)(said["message"], remedy=said["remedy"])


async def _outcome(
    store: PostgresStore, task: Task, number: int, scope: Scope, bell: asyncio.Event
) -> str | None:
    """What became of it; None where nobody has taken it in time, and now nobody will."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            while (outcome := await store.input_outcome(number, scope)) is None:
                if not await _goes_on(store, task):
                    return await store.forget_input(number, scope)
                await bell.wait()
                bell.clear()
    except TimeoutError:
        return await store.forget_input(number, scope)
    except asyncio.CancelledError:
        await asyncio.shield(store.forget_input(number, scope))
        raise
    await store.forget_input(number, scope)
    return outcome


async def _goes_on(store: PostgresStore, task: Task) -> bool:
    """Whether the attempt that was to read it has not ended."""
    now = await store.get(task.id)
    return now is not None and now.attempt == task.attempt and not now.state.terminal


async def _why_not(store: PostgresStore, task: Task) -> BackburnerError:
    now = await store.get(task.id)
    if now is None or now.state.terminal:
        return InputRefused(f"{task.id} has ended", remedy=f"see how: backburner show {task.id}")
    if now.attempt != task.attempt:
        return InputNotYet(f"{task.id} is being tried again", remedy="send again when it runs")
    return LimitReached(
        f"too much waits for the input of {task.id}", remedy="send again when it has read some"
    )


class InputCarrier:
    """Hands on what is sent to the commands of one node: in order for each, and once."""

    def __init__(self, store: NodeStore, home: Home, report: Callable[[str], None]) -> None:
        self._store = store
        self._home = home
        self._report = report
        self._threads = ThreadPoolExecutor(_AT_ONCE, "backburner-input")
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._bell = asyncio.Event()
        self._bell.set()

    async def run(self) -> None:
        """Until cancelled."""
        unsubscribe = self._store.on_change(self._bell.set, about(Subject.INPUT))
        try:
            while True:
                await self._bell.wait()
                self._bell.clear()
                try:
                    await self._look()
                except Exception as error:  # noqa: BLE001 - the next look may do
                    self._report(f"input was not looked for: {type(error).__name__}: {error}")
                    await asyncio.sleep(_LOOK_AGAIN_S)
                    self._bell.set()
        finally:
            unsubscribe()
            for each in self._busy.values():
                each.cancel()
            if self._busy:
                await asyncio.wait(self._busy.values())
            self._threads.shutdown(wait=False)

    async def _look(self) -> None:
        waiting: dict[str, list[Piece]] = {}
        for piece in await self._store.inputs():
            waiting.setdefault(piece.task, []).append(piece)
        for task_id, pieces in waiting.items():
            if task_id not in self._busy:
                self._busy[task_id] = asyncio.create_task(self._hand_on(task_id, pieces))

    async def _hand_on(self, task_id: str, pieces: list[Piece]) -> None:
        try:
            for piece in pieces:
                await self._store.input_done(piece.number, await self._given(piece))
        except Exception as error:  # noqa: BLE001 - it waits, and is given again
            self._report(f"{task_id}: input: {type(error).__name__}: {error}")
            await asyncio.sleep(_LOOK_AGAIN_S)
        finally:
            del self._busy[task_id]
            self._bell.set()  # more may have come meanwhile

    async def _given(self, piece: Piece) -> str:
        """Empty, or why not."""
        loop = asyncio.get_running_loop()
        folder = self._home.attempt(piece.task, piece.attempt)
        until = loop.time() + _STARTS_S
        while True:
            try:
                await loop.run_in_executor(
                    self._threads, job_input.give, folder, piece.number, piece.data
                )
                return ""
            except InputNotYet as error:  # it is just being started
                if loop.time() > until:
                    return _as_json(error)
                await asyncio.sleep(_LOOK_AGAIN_S)
            except BackburnerError as error:
                return _as_json(error)


def _as_json(error: BackburnerError) -> str:
    return json.dumps({"code": error.code, "message": error.message, "remedy": error.remedy})
