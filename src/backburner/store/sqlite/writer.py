"""The one writer of a process: a thread that commits everything that waits in one transaction.

An fsync costs about as much as fifty statements, so callers that arrive together share one. Each
operation has a savepoint of its own: one that fails takes nothing else with it. Across processes a
blocking lock file comes before BEGIN IMMEDIATE, because SQLite's own busy handler sleeps and is
unfair.
"""

import asyncio
import contextlib
import fcntl
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import apsw

from backburner.model.errors import StoreError
from backburner.store.sqlite.connection import explain
from backburner.store.sqlite.transaction import Statements

Result = TypeVar("Result")
Operation = Callable[[Statements], Any]

_BATCH = 512
"""Bounds the time that one transaction holds the lock against other processes."""


class WriteLock:
    """The lock file that serialises the writers of all processes."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def __enter__(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        # Explicitly, because a child between fork and exec may hold a copy of the descriptor.
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)


class _Waiting:
    """An operation and the future that its caller waits for."""

    __slots__ = ("error", "future", "loop", "operation", "result")

    def __init__(
        self, operation: Operation, loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any]
    ) -> None:
        self.operation = operation
        self.loop = loop
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """In the caller's loop."""
        if self.future.done():
            return  # the caller went away; what was written stays written
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Writer:
    """Owns the writing connection; nothing else in the process writes."""

    def __init__(
        self,
        connection: apsw.Connection,
        lock: WriteLock,
        committed: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._statements = Statements(connection)
        self._lock = lock
        self._committed = committed
        self._closing = False
        self._entrance = threading.Lock()
        self._closed = False
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="backburner-writer", daemon=True)
        self._thread.start()

    async def write(self, operation: Callable[[Statements], Result]) -> Result:
        """Run ``operation`` in a transaction; returns when it is on disk."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        with self._entrance:  # nothing may queue up behind the end, where nobody would answer
            if self._closed:
                raise StoreError("the record is closed", remedy="open it again")
            self._queue.put(_Waiting(operation, loop, future))
        return await future

    def close(self) -> None:
        """Write what waits, then stop. Blocks for as long as the last commit takes."""
        with self._entrance:
            self._closed = True
            self._queue.put(None)
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            done = [first]
            before = self._connection.total_changes()
            try:
                with self._lock:
                    self._commit(done)
            except Exception as error:  # noqa: BLE001 - whatever it is, the callers must hear it
                failure = (
                    explain(error, self._connection.filename)
                    if isinstance(error, apsw.Error)
                    else StoreError(f"writing to the record failed: {error}")
                )
                for waiting in done:
                    waiting.error = failure
                _settle(done)
            else:
                _settle(done)  # first the callers, who wait, then everyone else
                # Not for nothing: who looks for work in vain would wake itself, without end.
                if self._connection.total_changes() != before:
                    self._committed()
            if self._closing:
                return

    def _commit(self, done: list[_Waiting]) -> None:
        """Run and commit ``done`` and what arrives meanwhile."""
        run = self._statements.command
        self._take_more(done)  # where the record is locked, all who wait hear of it at once
        run("BEGIN IMMEDIATE")
        try:
            index = 0
            while index < len(done):
                self._attempt(done[index])
                index += 1
                if index == len(done) and index < _BATCH:
                    self._take_more(done)
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise

    def _take_more(self, done: list[_Waiting]) -> None:
        try:
            while len(done) < _BATCH:
                waiting = self._queue.get_nowait()
                if waiting is None:
                    self._closing = True
                    return
                done.append(waiting)
        except Empty:
            pass

    def _attempt(self, waiting: _Waiting) -> None:
        run = self._statements.command
        run("SAVEPOINT operation")
        try:
            waiting.result = waiting.operation(self._statements)
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite gave up the whole transaction: a full disk does that
            run("ROLLBACK TO operation")
            waiting.error = (
                explain(error, self._connection.filename)
                if isinstance(error, apsw.Error)
                else error
            )
        run("RELEASE operation")


def _settle(done: list[_Waiting]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}
    for waiting in done:
        by_loop.setdefault(waiting.loop, []).append(waiting)
    for loop, settled in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle_all, settled)
    done.clear()


def _settle_all(settled: list[_Waiting]) -> None:
    for waiting in settled:
        waiting.settle()
