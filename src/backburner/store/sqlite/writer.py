"""The one writer of a process: a thread that commits everything that waits in one transaction.

An fsync costs about as much as fifty statements, so callers that arrive together share one, and
those of a kind their statements (`together`). One that fails takes nothing else with it: most fail
before their first change, and where one does not, all of them are run again with a savepoint each,
so an operation does nothing but run statements.
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
from queue import Empty
from typing import TypeVar

import apsw

from backburner.model.errors import StoreBusy, StoreError
from backburner.model.forks import not_for_children
from backburner.store.record.entrance import Asked, Entrance, Spoilt, answer, carry_out
from backburner.store.record.together import Together, groups
from backburner.store.sqlite.connection import explain
from backburner.store.sqlite.statements import Statements
from backburner.store.sqlite.wal import Log

Order = TypeVar("Order")
Result = TypeVar("Result")

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
        not_for_children(self)

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
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


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
        self._log = Log(connection)
        self._lock = lock
        self._changed = changed
        self._wake_others = wake_others
        self._before = before
        self._closing = False
        self._hands = threading.Lock()
        self._in_hand: list[Asked] = []
        self._waits_since: float | None = None
        self._entrance = Entrance()
        self._queue = self._entrance.queue
        self._thread = threading.Thread(target=self._run, name="backburner-writer", daemon=True)
        self._thread.start()

    async def write(
        self,
        operation: Callable[[Statements], Result],
        then: Callable[[Result], None] | None = None,
        *,
        owner: str | None = None,  # noqa: ARG002 - whoever can write the file can write all of it
    ) -> Result:
        """Run ``operation`` in a transaction; returns when it is on disk.

        ``then`` is called with its result after the commit and before anyone else can write.
        """
        return await self._entrance.ask(None, operation, then)

    def write_together(self, kind: Together[Order, Result], order: Order) -> asyncio.Future[Result]:
        """The same for one of a kind, which may share its statements with others.

        Who gives up waiting cancels the future and not the write.
        """
        return self._entrance.ask(kind, order)

    def close(self) -> bool:
        """Write what waits, then stop. Blocks for as long as the last commit takes.

        False where the lock cannot be had: its thread still waits for it, and needs it open.
        """
        self._entrance.close()
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
            given_up, self._in_hand = self._in_hand, []
        with contextlib.suppress(Empty):
            while (waiting := self._queue.get_nowait()) is not None:
                given_up += waiting
            self._queue.put(None)
        if given_up:
            error = self._lock.busy()
            for waiting in given_up:
                waiting.error = error
            self._entrance.settle(given_up)

    @contextlib.contextmanager
    def _alone(self) -> Generator[list[Asked]]:
        """The lock; what is still to be written when it is had."""
        self._waits_since = time.monotonic()
        with self._lock:
            self._waits_since = None
            with self._hands:
                wanted, self._in_hand = self._in_hand, []
            yield wanted

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            done = self._in_hand = first
            before = self._connection.total_changes()
            try:
                with self._alone() as done:
                    self._commit(done)
                    # Not for nothing: who looks for work in vain would wake itself, without end.
                    changed = self._connection.total_changes() != before
                    # First the callers, who wait.
                    self._entrance.settle(done, self._changed if changed else None)
                    self._log.write_back()
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
                self._entrance.settle(done)
            else:
                if changed:
                    self._wake_others()
            if self._closing:
                return

    def _commit(self, done: list[Asked]) -> None:
        """Run and commit ``done`` and what arrives meanwhile."""
        self._take_more(done)  # where the record is locked, all who wait hear of it at once
        if not done:
            return
        try:
            self._transaction(done, self._attempt_at_once)
        except Spoilt:
            self._transaction(done, self._attempt_apart)
        for waiting in done:
            if waiting.then is not None and waiting.error is None:
                waiting.then(waiting.result)

    def _transaction(self, done: list[Asked], attempt: Callable[[list[Asked]], None]) -> None:
        run = self._statements.command
        run("BEGIN IMMEDIATE")
        try:
            self._before()
            tried = 0
            while tried < len(done):
                new, tried = done[tried:], len(done)
                for group in groups(new):
                    attempt(group)
                self._take_more(done)
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise

    def _take_more(self, done: list[Asked]) -> None:
        try:
            while len(done) < _BATCH:
                waiting = self._queue.get_nowait()
                if waiting is None:
                    self._closing = True
                    return
                done += waiting
        except Empty:
            pass

    def _attempt_apart(self, group: list[Asked]) -> None:
        run = self._statements.command
        for each in group:
            run("SAVEPOINT operation")
            try:
                self._attempt_at_once([each])
            except Spoilt as spoilt:
                run("ROLLBACK TO operation")
                each.error = spoilt.error
            run("RELEASE operation")

    def _attempt_at_once(self, group: list[Asked]) -> None:
        before = self._connection.total_changes()
        try:
            answers = carry_out(self._statements, group)
        except Exception as error:
            if not self._connection.in_transaction:
                raise  # SQLite gave up the whole transaction: a full disk does that
            if isinstance(error, apsw.Error):
                error = explain(error, self._connection.filename)
            if len(group) > 1 or self._connection.total_changes() != before:
                raise Spoilt(error) from None
            answers = [error]
        answer(group, answers)
