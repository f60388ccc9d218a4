"""The one writer of a process: a thread that commits everything that waits in one transaction.

A lock of the database comes before each transaction, so that there is one writer at a time on all
machines: an operation sees nothing change under it, and events get their numbers in the order of
the commits. Callers that arrive together share the lock and the fsync, and those of a kind their
round trips (`together`).

A connection that is lost, or silent, is made again, and what was to be written is written then, for
as long as its caller is promised. Where it was lost during the commit, the database is asked
whether it knows of it: each commit leaves its number.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import psycopg

from backburner.model.clock import boot_now
from backburner.model.errors import StoreAway, StoreError, StoreUnusable
from backburner.store.news import Listener
from backburner.store.postgres import clock
from backburner.store.postgres.arrivals import Arrivals
from backburner.store.postgres.at_once import claimed_before, write_at_once
from backburner.store.postgres.commitments import Commitments
from backburner.store.postgres.connection import (
    PATIENCE_S,
    Connection,
    ReadOnly,
    connect,
    explain,
    is_lost,
)
from backburner.store.postgres.migrations import newest, refuse_newer
from backburner.store.postgres.notices import QUIET, news_of
from backburner.store.postgres.silence import hang_up
from backburner.store.postgres.statements import Statements
from backburner.store.postgres.wake import notices
from backburner.store.postgres.writers_lock import LOCK, LOCK_BEYOND, UNLOCK, end_stopped_holder
from backburner.store.record import transaction
from backburner.store.record.claims import CLAIMS
from backburner.store.record.entrance import Asked, Entrance, Spoilt, answer, carry_out
from backburner.store.record.together import Together, groups
from backburner.store.record.transaction import Row

Order = TypeVar("Order")
Result = TypeVar("Result")

_FORMAT = b"SELECT format.oldest, format.number, " + clock.QUERY + b" FROM format"
_LAZILY = b"SET LOCAL synchronous_commit = off"

_AGAIN_S = (0.02, 0.05, 0.1, 0.2, 0.5)

_LEAVES_S = 60.0
"""One transaction, and finding out what became of it, takes less."""


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
        self._commitments = Commitments()
        self.outdated: StoreUnusable | None = None
        self.backend = connection.info.backend_pid
        """The process of the database that writes for us; what it notifies of we know. 0 where that

        is not so: of what became of a commit whose answer was lost its notice may be the only word.
        """
        self._entrance = Entrance()
        self._arrivals = Arrivals(self._entrance)
        self._has_written = False
        self._has_begun = False
        """The first write is a transaction: who only starts one thing is told for sure that nothing
        was written, where the database went away before."""
        self._batches = 0
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
        return self._arrivals.is_empty

    def close(self) -> None:
        """Write what waits, then stop. Blocks for as long as the last commit takes, or is tried."""
        self._entrance.close()
        before = None
        while self._thread.is_alive() and before != self._batches:
            before = self._batches
            self._thread.join(_LEAVES_S)
        if self._thread.is_alive():  # whatever it is about: no process ends later for it
            if (run := self._statements) is not None:
                hang_up(run.connection)
            return
        if self._statements is not None:
            with contextlib.suppress(psycopg.Error):
                self._commitments.sign_off(self._statements)
        self._hang_up()

    # The thread

    def _run(self) -> None:
        while done := self._arrivals.next_batch():
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
                self._hang_up()
            self._batches += 1
            self._arrivals.took(time.monotonic() - began, count)
            self._entrance.settle(done, tell)

    def _write_patiently(self, done: list[Asked]) -> Callable[[], None] | None:
        """What tells others here of what was written, if anything was."""
        self._is_unsure = False
        for wait in _waits():
            try:
                self._write_at_once(done)
                return self._write_in_steps(done) if done else None
            except psycopg.Error as error:
                if isinstance(error, ReadOnly) and not self._has_written:
                    raise _never_written(error) from None
                if is_lost(error):
                    self._hang_up()
                elif not isinstance(error, psycopg.errors.LockNotAvailable):
                    raise
                if not self._has_freed_lock(error):
                    self._give_up(done, explain(error))
            if not done:
                return None
            time.sleep(wait)
        raise AssertionError("the waits have no end")

    def _has_freed_lock(self, error: psycopg.Error) -> bool:
        """Whether there was no turn to write because of somebody who has stopped, and there is."""
        run = self._statements
        if run is None or not isinstance(error, psycopg.errors.LockNotAvailable):
            return False
        with contextlib.suppress(psycopg.Error):  # the next try meets it, too
            return end_stopped_holder(run.connection)
        return False

    def _give_up(self, done: list[Asked], error: StoreError) -> None:
        """Whoever has waited for as long as was promised hears so, also of what was not yet tried:

        it would come to the same database.
        """
        before = time.monotonic() - PATIENCE_S
        tried = [each for each in done if each.since < before]
        done[:] = [each for each in done if each.since >= before]
        for each in tried:
            each.error = _unknown() if self._is_unsure else error
        others = self._arrivals.give_up(PATIENCE_S)
        for each in others:
            each.error = error
        if tried or others:
            # Of what may have been written nobody here has heard.
            tell = partial(self._changed, None) if tried and self._is_unsure else None
            self._entrance.settle([*tried, *others], tell)

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

    def _write_in_steps(self, done: list[Asked]) -> Callable[[], None] | None:
        try:
            return self._transaction(done, self._attempt)
        except Spoilt:
            pass
        except psycopg.Error as error:  # of something that was sent with the commit
            if _is_nobodys_fault(error):
                raise
        return self._transaction(done, self._attempt_apart)

    def _transaction(
        self, done: list[Asked], attempt: Callable[[Statements, list[Asked]], None]
    ) -> Callable[[], None] | None:
        run = self._statements or self._call()
        beyond = done[0].then is not None
        if beyond:
            run.command(LOCK_BEYOND)
        try:
            lock = () if beyond else (LOCK,)
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
                tell = self._commit(run, done)
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
                    run.command(UNLOCK)
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

    def _commit(self, run: Statements, done: list[Asked]) -> Callable[[], None] | None:
        """What tells of it here; others are notified with it."""
        self.backend = run.connection.info.backend_pid
        news, quiet = news_of(run.events, run.ran), run.ran.keys() <= QUIET
        try:
            run.commit(self._commitments.next(), *(() if quiet else notices(news)))
        except psycopg.Error as error:
            if not is_lost(error) or not self._has_committed(done, error):
                raise
        self._has_written = True
        # Of what may have been written before it was lost nobody here has heard.
        return None if quiet else partial(self._changed, None if self._is_unsure else news)

    def _has_committed(self, done: list[Asked], lost: psycopg.Error) -> bool:
        """What became of a transaction whose connection was lost while it was committed."""
        was_unsure, self._is_unsure = self._is_unsure, True
        for wait in _waits():
            self._hang_up()
            try:
                found = self._commitments.is_there(self._call())
            except psycopg.Error as error:
                if not self._has_freed_lock(error):
                    self._give_up(done, explain(lost))
            else:
                self._is_unsure = was_unsure
                return found
            if not done:
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
            self.backend = 0


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
