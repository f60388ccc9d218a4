"""The one writer of a process: a thread that commits everything that waits in one transaction.

An fsync costs about as much as fifty statements, so callers that arrive together share one. One
that fails takes nothing else with it: most fail before their first change, and where one does not,
all of them are run again with a savepoint each, so an operation does nothing but run statements.
Across processes a blocking lock file comes before BEGIN IMMEDIATE, because SQLite's own busy
handler sleeps and is unfair.
"""

import asyncio
import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Generator
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import apsw

from backburner.model.errors import StoreBusy, StoreClosed, StoreError
from backburner.store.sqlite.connection import explain
from backburner.store.sqlite.statements import Statements

Result = TypeVar("Result")
Operation = Callable[[Statements], Any]

_BATCH = 512
"""Bounds the time that one transaction holds the lock against other processes."""

LONGEST_WAIT_S = 20.0
"""For the lock of the other processes, each of which has it for milliseconds: one that was stopped
(Ctrl-Z) or hangs on its disk would keep everyone waiting for ever."""

_TRY_AGAIN_S = 0.01


class WriteLock:
    """The lock file that serialises the writers of all processes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def __enter__(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    @contextlib.contextmanager
    def in_time(self) -> Generator[None]:
        """The lock, or StoreBusy after a while: where no thread can wait for it."""
        deadline = time.monotonic() + LONGEST_WAIT_S
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self.busy() from None
            time.sleep(_TRY_AGAIN_S)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def busy(self) -> StoreBusy:
        """Another process has had the lock for too long; which one, if the kernel says so."""
        pid = self._holder()
        name = f"process {pid}" if pid else "another process"
        end = f"continue it: kill -CONT {pid}; or end it" if pid else "continue or end it"
        return StoreBusy(
            f"{name} has been writing to the record for more than {LONGEST_WAIT_S:g} s",
            remedy=f"if it is stopped, {end}",
        )

    def _holder(self) -> int | None:
        status = os.fstat(self._fd)
        device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
        try:
            with open("/proc/locks", encoding="ascii") as file:
                for line in file:
                    words = line.split()
                    if words[1:2] == ["FLOCK"] and words[5] == f"{device}:{status.st_ino}":
                        return int(words[4])  # those who wait have an arrow before the word
        except (OSError, ValueError, IndexError):
            pass
        return None

    def __exit__(self, *_: object) -> None:
        # Explicitly, because a child between fork and exec may hold a copy of the descriptor.
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)


class _Waiting:
    """An operation and the future that its caller waits for."""

    __slots__ = ("error", "future", "operation", "result", "then")

    def __init__(
        self,
        operation: Operation,
        then: Callable[[Any], None] | None,
        future: asyncio.Future[Any],
    ) -> None:
        self.operation = operation
        self.then = then
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
    """Owns the writing connection; nothing else in the process writes. For one event loop."""

    def __init__(
        self,
        connection: apsw.Connection,
        lock: WriteLock,
        *,
        changed: Callable[[], None],
        wake_others: Callable[[], None] = lambda: None,
        before: Callable[[], None] = lambda: None,
    ) -> None:
        """After each commit ``changed`` is called in the loop, and ``wake_others`` in our thread;

        ``before`` may refuse a transaction.
        """
        self._connection = connection
        self._statements = Statements(connection)
        self._lock = lock
        self._changed = changed
        self._wake_others = wake_others
        self._loop = asyncio.get_running_loop()
        self._before = before
        self._closing = False
        self._hands = threading.Lock()
        self._in_hand: _Waiting | None = None
        self._waits_since: float | None = None
        self._entrance = threading.Lock()
        self._closed = False
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="backburner-writer", daemon=True)
        self._thread.start()

    async def write(
        self,
        operation: Callable[[Statements], Result],
        then: Callable[[Result], None] | None = None,
    ) -> Result:
        """Run ``operation`` in a transaction; returns when it is on disk.

        ``then`` is called with its result after the commit and before anyone else can write.
        """
        future: asyncio.Future[Result] = self._loop.create_future()
        with self._entrance:  # nothing may queue up behind the end, where nobody would answer
            if self._closed:
                raise StoreClosed("the record is closed", remedy="open it again")
            self._queue.put(_Waiting(operation, then, future))
        return await future

    def close(self) -> bool:
        """Write what waits, then stop. Blocks for as long as the last commit takes.

        False where the lock cannot be had: its thread still waits for it, and needs it open.
        """
        with self._entrance:
            self._closed = True
            self._queue.put(None)
        while self._thread.is_alive():
            self._thread.join(1.0)
            if self._is_stuck():  # it ends with the process, and writes nothing before
                self.give_up_waiting()
                return False
        self._connection.close()
        return True

    def _is_stuck(self) -> bool:
        since = self._waits_since
        return since is not None and time.monotonic() - since > LONGEST_WAIT_S

    def give_up_waiting(self) -> None:
        """Where another process does not let go of the lock: whoever waits is told, and nothing of

        theirs is written later. To be called once in a while.
        """
        if not self._is_stuck():
            return
        with self._hands:  # what the writer has begun to write, it finishes
            given_up = [self._in_hand] if self._in_hand is not None else []
            self._in_hand = None
        with contextlib.suppress(Empty):
            while (waiting := self._queue.get_nowait()) is not None:
                given_up.append(waiting)
            self._queue.put(None)
        if given_up:
            error = self._lock.busy()
            for waiting in given_up:
                waiting.error = error
            self._settle(given_up)

    @contextlib.contextmanager
    def _alone(self) -> Generator[list[_Waiting]]:
        """The lock; what is still to be written when it is had."""
        self._waits_since = time.monotonic()
        with self._lock:
            self._waits_since = None
            with self._hands:
                wanted = self._in_hand
                self._in_hand = None
            yield [] if wanted is None else [wanted]

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            done = [first]
            self._in_hand = first
            before = self._connection.total_changes()
            try:
                with self._alone() as done:
                    self._commit(done)
            except Exception as error:  # noqa: BLE001 - whatever it is, the callers must hear it
                failure = (
                    explain(error, self._connection.filename)
                    if isinstance(error, apsw.Error)
                    else error
                    if isinstance(error, StoreError)
                    else StoreError(f"writing to the record failed: {error}")
                )
                for waiting in done:
                    waiting.error = failure
                self._settle(done)
            else:
                # Not for nothing: who looks for work in vain would wake itself, without end.
                changed = self._connection.total_changes() != before
                self._settle(done, changed=changed)  # first the callers, who wait
                if changed:
                    self._wake_others()
            if self._closing:
                return

    def _commit(self, done: list[_Waiting]) -> None:
        """Run and commit ``done`` and what arrives meanwhile."""
        self._take_more(done)  # where the record is locked, all who wait hear of it at once
        if not done:
            return
        try:
            self._transaction(done, self._attempt)
        except _Spoilt:
            self._transaction(done, self._attempt_apart)
        for waiting in done:
            if waiting.then is not None and waiting.error is None:
                waiting.then(waiting.result)

    def _transaction(self, done: list[_Waiting], attempt: Callable[[_Waiting], None]) -> None:
        run = self._statements.command
        run("BEGIN IMMEDIATE")
        try:
            self._before()
            index = 0
            while index < len(done):
                attempt(done[index])
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

    def _settle(self, done: list[_Waiting], *, changed: bool = False) -> None:
        """In the loop, and in one go: to wake it costs as much as a few statements."""

        def settle() -> None:
            for waiting in done:
                waiting.settle()
            if changed:
                self._changed()

        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(settle)

    def _attempt(self, waiting: _Waiting) -> None:
        before = self._connection.total_changes()
        waiting.error = None
        try:
            waiting.result = waiting.operation(self._statements)
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite gave up the whole transaction: a full disk does that
            if isinstance(error, apsw.Error):
                error = explain(error, self._connection.filename)
            if self._connection.total_changes() != before:
                raise _Spoilt(error) from None
            waiting.error = error

    def _attempt_apart(self, waiting: _Waiting) -> None:
        run = self._statements.command
        run("SAVEPOINT operation")
        try:
            self._attempt(waiting)
        except _Spoilt as spoilt:
            run("ROLLBACK TO operation")
            waiting.error = spoilt.error
        run("RELEASE operation")


class _Spoilt(Exception):
    """An operation has failed after it had changed something, which must not be committed."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
