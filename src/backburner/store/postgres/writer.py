"""The one writer of a process: a thread that commits everything that waits in one transaction.

A lock of the database comes before each transaction, so that there is one writer at a time on all
machines: an operation sees nothing change under it, and events get their numbers in the order of
the commits. Callers that arrive together share the lock and the fsync, and those of a kind their
round trips (`together`). In a crowd the thread waits a little for more of them: a transaction costs
about the same whether it has four or forty, and on a busy machine that cost is what all wait for.

A connection that is lost is made again, and what was to be written is written then. Where it was
lost during the commit, the database is asked whether it knows of it: each commit leaves its number.
(The number of a transaction would not do: after a crash the database gives it to another one.)
"""

import asyncio
import contextlib
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty
from typing import Any, TypeVar

import psycopg

from backburner.model.clock import boot_now
from backburner.model.errors import StoreAway, StoreBusy, StoreError, StoreUnusable
from backburner.store.news import Listener
from backburner.store.postgres import clock
from backburner.store.postgres.at_once import claimed_before, write_at_once
from backburner.store.postgres.connection import (
    HOLD_S,
    PATIENCE_S,
    Connection,
    ReadOnly,
    connect,
    explain,
    is_lost,
)
from backburner.store.postgres.migrations import WRITERS, newest, refuse_newer
from backburner.store.postgres.notices import QUIET, news_of
from backburner.store.postgres.statements import Statements
from backburner.store.postgres.wake import notices
from backburner.store.record import transaction
from backburner.store.record.claims import CLAIMS
from backburner.store.record.entrance import Asked, Entrance, Spoilt, answer, carry_out
from backburner.store.record.together import Together, groups
from backburner.store.record.transaction import Row

Order = TypeVar("Order")
Result = TypeVar("Result")

_BATCH = 128
"""Bounds the time that one transaction keeps the other machines waiting."""

_CROWD = 4
"""So many in one transaction are a crowd; fewer get no quicker by waiting for each other."""
_LINGER = 2.0
"""How long a crowd is waited for, as a multiple of the time that its last transaction took."""
_LONGEST_LINGER_S = 0.02

_FORMAT = b"SELECT format.oldest, format.number, " + clock.QUERY + b" FROM format"
_SIGN = (
    b"INSERT INTO commitment (writer, number) VALUES (%(writer)s, %(number)s) ON CONFLICT (writer)"
    b" DO UPDATE SET number = excluded.number, at = excluded.at"
)
_WHAT_WAS_SIGNED = (
    b"BEGIN; SELECT pg_advisory_xact_lock(%d);" % WRITERS
    + b" SELECT max(number) FROM commitment WHERE writer = '%s'; COMMIT"
)
_SIGN_OFF = (
    b"DELETE FROM commitment WHERE writer = '%s' OR at < clock_timestamp() - interval '1 day'"
)
_LOCK = b"SELECT pg_advisory_xact_lock(%d)" % WRITERS
_LOCK_BEYOND = b"SELECT pg_advisory_lock(%d); SET idle_session_timeout = '%ds'" % (WRITERS, HOLD_S)
_UNLOCK = b"SET idle_session_timeout = 0; SELECT pg_advisory_unlock(%d)" % WRITERS

_LAZILY = b"SET LOCAL synchronous_commit = off"

_AGAIN_S = (0.02, 0.05, 0.1, 0.2, 0.5)


class Writer:
    """Owns the writing connection; nothing else in the process writes. For one event loop."""

    def __init__(
        self,
        address: str,
        connection: Connection,
        database_clock: clock.DatabaseClock,
        changed: Listener,
        before_commit: Callable[[Statements], None],
    ) -> None:
        """A commit that writes something is added to by ``before_commit``; after it ``changed`` is

        called in the loop with what it was.
        """
        self._before_commit = before_commit
        self._address = address
        self._clock = database_clock
        self._changed = changed
        self._statements: Statements | None = Statements(connection, database_clock)
        self._name = secrets.token_hex(8).encode()
        self._number = 0
        """Of our last commit."""
        self.outdated: StoreUnusable | None = None
        self.backend = connection.info.backend_pid
        """The process of the database that writes for us; what it notifies of we know."""
        self._entrance = Entrance()
        self._arrived: deque[Asked] = deque()
        self._closing = self._has_nothing = False
        self._linger_s = 0.0
        self._has_written = False
        self._has_begun = False
        """The first write is a transaction: who only starts one thing is told for sure that nothing
        was written, where the database went away before."""
        self._is_unsure = False
        """What is to be written may have been, before the connection was lost."""
        self._thread = threading.Thread(target=self._run, name="backburner-writer", daemon=True)
        self._thread.start()

    async def write(
        self,
        operation: Callable[[transaction.Statements], Result],
        then: Callable[[Result], None] | None = None,
        *,
        owner: str | None = None,
    ) -> Result:
        """See `backburner.store.record.changes.Writing`."""
        return await self._entrance.ask(None, operation, then, owner)

    def write_together(self, kind: Together[Order, Result], order: Order) -> asyncio.Future[Result]:
        """See `backburner.store.record.changes.Writing`."""
        return self._entrance.ask(kind, order)

    @property
    def is_idle(self) -> bool:
        """Whether it writes nothing, and has nothing to write."""
        return self._has_nothing and self._entrance.is_empty

    def close(self) -> None:
        """Write what waits, then stop. Blocks for as long as the last commit takes."""
        self._entrance.close()
        self._thread.join()
        if self._statements is not None:
            with contextlib.suppress(psycopg.Error):
                self._statements.command(_SIGN_OFF % self._name)
        self._hang_up()

    # The thread

    def _run(self) -> None:
        while done := self._next_batch():
            tell: Callable[[], None] | None = None
            began, count = time.monotonic(), len(done)
            try:
                tell = self._write_patiently(done)
            except Exception as error:  # noqa: BLE001 - whatever it is, the callers must hear it
                failure = (
                    explain(error)
                    if isinstance(error, psycopg.Error)
                    else error
                    if isinstance(error, StoreError)
                    else StoreError(f"writing to the record failed: {error}")
                )
                for waiting in done:
                    waiting.error = failure
                if not isinstance(error, StoreBusy):
                    self._hang_up()
            linger_s = _LINGER * (time.monotonic() - began) if count >= _CROWD else 0.0
            self._linger_s = min(linger_s, _LONGEST_LINGER_S)
            self._entrance.settle(done, tell)

    def _next_batch(self) -> list[Asked]:
        """What is written in one transaction; nothing at the end."""
        self._receive()
        if self._linger_s and 0 < len(self._arrived) < _BATCH and not self._closing:
            time.sleep(self._linger_s)
            self._receive()
        done: list[Asked] = []
        while self._arrived and len(done) < _BATCH:
            if done and (done[0].then or self._arrived[0].then) is not None:
                break  # such a one is alone in its transaction
            done.append(self._arrived.popleft())
        return done

    def _receive(self) -> None:
        """What has arrived; waits where there is nothing to do."""
        with contextlib.suppress(Empty):
            while not self._closing and len(self._arrived) < _BATCH:
                self._has_nothing = not self._arrived
                piece = self._entrance.queue.get(block=self._has_nothing)
                self._has_nothing = False
                if piece is None:
                    self._closing = True
                else:
                    self._arrived += piece

    def _write_patiently(self, done: list[Asked]) -> Callable[[], None] | None:
        """What tells others here of what was written, if anything was."""
        deadline = time.monotonic() + PATIENCE_S
        self._is_unsure = False
        for wait in _waits():
            try:
                self._write_at_once(done)
                return self._write_in_steps(done, deadline) if done else None
            except psycopg.Error as error:
                if not is_lost(error):
                    raise
                if isinstance(error, ReadOnly) and not self._has_written:
                    raise _never_written(error) from None
                if time.monotonic() > deadline:
                    raise _unknown() if self._is_unsure else error from None
                self._hang_up()
            time.sleep(wait)
        raise AssertionError("the waits have no end")

    def _write_at_once(self, done: list[Asked]) -> None:
        """What can be, which is answered and no longer one of those then."""
        if self._is_unsure or not self._has_begun:
            return
        run = self._statements or self._call()
        self.backend = run.connection.info.backend_pid
        try:
            answered, news = write_at_once(run, done, newest())
        except psycopg.Error as error:
            self._is_unsure = is_lost(error) and not isinstance(error, ReadOnly)
            if _is_nobodys_fault(error):
                raise
            return  # a transaction can tell what is wrong
        if answered:
            self._has_written |= bool(news.events)
            self._entrance.settle(answered, partial(self._changed, news) if news.events else None)
            done[:] = [each for each in done if each not in answered]

    def _write_in_steps(self, done: list[Asked], deadline: float) -> Callable[[], None] | None:
        try:
            return self._transaction(done, self._attempt, deadline)
        except Spoilt:
            pass
        except psycopg.Error as error:  # of something that was sent with the commit
            if _is_nobodys_fault(error):
                raise
        return self._transaction(done, self._attempt_apart, deadline)

    def _transaction(
        self,
        done: list[Asked],
        attempt: Callable[[Statements, list[Asked]], None],
        deadline: float,
    ) -> Callable[[], None] | None:
        run = self._statements or self._call()
        beyond = done[0].then is not None
        if beyond:
            run.command(_LOCK_BEYOND)
        try:
            lock = () if beyond else (_LOCK,)
            laziness = (_LAZILY,) if _is_lazy(done) else ()
            run.begin(*lock, *laziness, last=_FORMAT, begun=partial(self._begun, boot_now()))
            before = run.changes
            for group in groups(done):
                attempt(run, group)
            tell = partial(self._changed, None) if self._is_unsure else None
            if run.changes == before:
                run.command(b"COMMIT")
            else:
                run.act_for(None)
                self._before_commit(run)
                tell = self._commit(run, deadline)
            for waiting in done:
                if waiting.then is not None and waiting.error is None:
                    waiting.then(waiting.result)
        except BaseException:
            with contextlib.suppress(psycopg.Error):  # lost, which ends it too
                run.roll_back()
            raise
        finally:
            if beyond:
                with contextlib.suppress(psycopg.Error):  # lost, and the lock with it
                    run.command(_UNLOCK)
        return tell

    def _begun(self, asked: int, row: Row) -> None:
        oldest, number, now = row
        self._has_begun = True
        self._clock.was(asked, now)
        self.refuse_newer(oldest, number)

    def refuse_newer(self, oldest: int, number: int) -> None:
        """StoreUnusable where the record has become one that this program does not understand."""
        try:
            refuse_newer(oldest, number)
        except StoreUnusable as error:
            first, self.outdated = self.outdated is None, error
            if first:  # who waits for a change has to hear of it: there is none to come
                self._entrance.settle([], partial(self._changed, None))
            raise

    def _attempt(self, run: Statements, group: list[Asked]) -> None:
        before = run.changes
        try:
            run.act_for(group[0].owner)
            answers = carry_out(run, group)
            if group[0].kind is CLAIMS and (self._is_unsure or any(e.order.unsure for e in group)):
                answers = claimed_before(run, group, answers)
        except StoreUnusable:
            raise  # nothing of it may be written
        except psycopg.Error as error:
            if _is_nobodys_fault(error):
                raise
            raise Spoilt(explain(error)) from None
        except Exception as error:  # noqa: BLE001 - the caller hears it
            if len(group) > 1 or run.changes != before:
                raise Spoilt(error) from None
            answers = [error]
        answer(group, answers)

    def _attempt_apart(self, run: Statements, group: list[Asked]) -> None:
        for each in group:
            try:
                with run.undone_where_it_fails():
                    self._attempt(run, [each])
            except Spoilt as spoilt:
                each.error = spoilt.error
            except psycopg.Error as error:
                if _is_nobodys_fault(error):
                    raise
                each.error = explain(error)

    def _commit(self, run: Statements, deadline: float) -> Callable[[], None] | None:
        """What tells of it here; others are notified with it."""
        self.backend = run.connection.info.backend_pid
        news, quiet = news_of(run.events, run.ran), run.ran.keys() <= QUIET
        self._number += 1
        try:
            signed = (_SIGN, {"writer": self._name.decode(), "number": self._number})
            run.commit(signed, *(() if quiet else notices(news)))
        except psycopg.Error as error:
            if not is_lost(error) or not self._has_committed(deadline):
                raise
        self._has_written = True
        # Of what may have been written before it was lost nobody here has heard.
        return None if quiet else partial(self._changed, None if self._is_unsure else news)

    def _has_committed(self, deadline: float) -> bool:
        """What became of a transaction whose connection was lost while it was committed.

        Asked under the lock, which that transaction holds until it is over.
        """
        for wait in _waits():
            self._hang_up()
            try:
                return self._call().rows_of(_WHAT_WAS_SIGNED % self._name)[2][0][0] == self._number
            except psycopg.Error:
                pass  # not back yet
            if time.monotonic() > deadline:
                raise _unknown()
            time.sleep(wait)
        raise AssertionError("the waits have no end")

    def _call(self) -> Statements:
        connection = connect(self._address)
        self.backend = connection.info.backend_pid
        self._statements = Statements(connection, self._clock)
        return self._statements

    def _hang_up(self) -> None:
        if self._statements is not None:
            self._statements.connection.close()
            self._statements = None


def _unknown() -> StoreAway:
    return StoreAway(
        "the database was lost while it wrote, and it is not known whether it has",
        remedy="look at the task before you start it again",
    )


def _never_written(error: ReadOnly) -> StoreUnusable:
    """Not waited for: it may well be the wrong address, or user, and no failover."""
    reason = explain(error)
    return StoreUnusable(reason.message, remedy=reason.remedy)


def _is_nobodys_fault(error: psycopg.Error) -> bool:
    """The connection was lost, or there was no turn to write."""
    return is_lost(error) or isinstance(error, psycopg.errors.LockNotAvailable)


def _is_lazy(done: list[Asked]) -> bool:
    """Whether nobody has to wait for the disk."""
    return all(each.kind is not None and each.kind.lazy for each in done)


def _waits() -> Any:
    """How long to wait before each further try."""
    yield from _AGAIN_S
    while True:
        yield _AGAIN_S[-1]
