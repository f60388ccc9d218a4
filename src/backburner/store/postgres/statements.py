"""The named statements on a connection of PostgreSQL: the only code that hands values to it."""

import contextlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from enum import Enum
from typing import Any

import psycopg

from backburner.model.clock import Instant
from backburner.model.events import EventKind
from backburner.model.signals import INBOX, SignalState
from backburner.model.values import value
from backburner.store.postgres.connection import OWNER, TENANT, Connection, Cursor
from backburner.store.postgres.queries import query
from backburner.store.postgres.texts import held_value, meant_value
from backburner.store.record import transaction
from backburner.store.record.leases import LeaseClock
from backburner.store.record.rows import to_json
from backburner.store.record.transaction import Row

_ACT_FOR = b"SELECT set_config('role', '%s', true), set_config('%s', %%(owner)s, true)" % (
    TENANT.encode(),
    OWNER.encode(),
)
_ACT_FOR_ALL = b"SELECT set_config('role', 'none', true)"

_UNANSWERED = frozenset({"event_insert", "events_insert", "jobs_defer"})
"""Nobody waits for what these give: they go along with the next one, in its round trip."""


@value
class _Unsent:
    text: bytes
    values: Mapping[str, Any]
    then: Callable[[Row], None] | None = None
    """Gets its first row."""


class Statements(transaction.Statements):
    """Runs the named statements on one connection."""

    def __init__(self, connection: Connection, leases: LeaseClock | None = None) -> None:
        """With a clock, for changes that ask what time it is."""
        self.connection = connection
        self._leases = leases
        self.changes = 0
        """How many rows were written."""
        self.ran: dict[str, list[Row]] = {}
        """The statements that wrote some of them in this transaction, and what those returned."""
        self.events: list[tuple[str, EventKind]] = []
        """What happened in this transaction to which tasks."""
        self._unsent: list[_Unsent] = []
        """What is sent together with the next statement, in one round trip."""
        self._acts_for: str | None = None
        self._role_is_known = True

    # Transactions

    def begin(
        self, *first: bytes, last: bytes = b"SELECT 1", begun: Callable[[Row], None] | None = None
    ) -> None:
        """A transaction, with these. ``begun`` gets the row of the ``last`` once it is there, which

        is with the answer to the next statement, and before any commit.
        """
        self.ran.clear()
        self.events.clear()
        self._acts_for, self._role_is_known = None, True
        self._unsent = [_Unsent(text, {}) for text in (b"BEGIN", *first)]
        self._unsent.append(_Unsent(last, {}, begun))

    def commit(self, *last: tuple[bytes, Mapping[str, Any]]) -> None:
        """End the transaction, after these."""
        if any(each.then is not None for each in self._unsent):
            self.send()  # what is found then may forbid it
        self._unsent += [_Unsent(*each) for each in last]
        self._execute(b"COMMIT", {}, prepare=False)

    def roll_back(self) -> None:
        """Undo the transaction."""
        self._unsent.clear()
        self.command(b"ROLLBACK")

    @contextlib.contextmanager
    def undone_where_it_fails(self) -> Generator[None]:
        """What is done in there; where it raises, nothing of it was done or is told of."""
        self.command(b"SAVEPOINT operation")
        changes, events = self.changes, len(self.events)
        ran = {name: len(rows) for name, rows in self.ran.items()}
        try:
            yield
            self.send()  # what goes wrong then is its own fault, and not the next one's
        except BaseException:
            self._unsent.clear()
            self.command(b"ROLLBACK TO operation")
            self._role_is_known = False  # it may have changed since, too
            self.changes = changes
            del self.events[events:]
            self.ran = {name: self.ran[name][:count] for name, count in ran.items()}
            raise
        finally:
            self.command(b"RELEASE operation")

    # For whom

    @contextlib.contextmanager
    def acting_for(self, owner: str) -> Generator[None]:
        """See the record's own."""
        before = self._acts_for
        self.act_for(owner)
        yield
        self.act_for(before)  # what has failed is rolled back, and the role with it

    def act_for(self, owner: str | None) -> None:
        """What follows in this transaction touches nothing of other owners; None for all again.

        It goes along with the next statement.
        """
        if owner == self._acts_for and self._role_is_known:
            return
        if owner is None:
            self.before_next(_ACT_FOR_ALL, {})
        else:
            self.before_next(_ACT_FOR, {"owner": held_value(owner)})
        self._acts_for, self._role_is_known = owner, True

    # One after the other

    def before_next(self, text: bytes, values: Mapping[str, Any]) -> None:
        """Send this together with the next statement."""
        self._unsent.append(_Unsent(text, values))

    def send(self) -> None:
        """What goes wrong with anything that was not sent yet is told now."""
        if self._unsent:
            self._execute(b"SELECT 1", {})

    def command(self, text: bytes) -> list[Row]:
        """Run statements that have neither a name nor values; the rows of the last one."""
        return self.rows_of(text)[-1]

    def rows_of(self, text: bytes) -> list[list[Row]]:
        """The same; the rows of each."""
        self.send()
        cursor = self.connection.execute(text)
        return [[] if each.description is None else each.fetchall() for each in cursor.results()]

    def now(self) -> Instant:
        """See the record's own."""
        assert self._leases is not None
        return self._leases.time_of_day()

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Every row of a statement."""
        lists = query(name).lists
        return self._run(
            name,
            {
                key: held_value(json.loads(value)) if key in lists else _scalar(value)
                for key, value in values.items()
            },
        )

    def many(self, name: str, /, **values: Any) -> list[Row]:
        """See the record's own."""
        return self._run(name, held(values))

    def alone(self, name: str, /, **values: Any) -> list[Row]:
        """The same, outside of a transaction."""
        rows = self.many(name, **values)
        self.ran.clear()
        return rows

    def found(self, name: str, /, **values: Any) -> list[list[Any]]:
        """See the record's own."""
        return [list(row) for row in self.many(name, **values)]

    def happens(self, task_id: str, kind: EventKind) -> None:
        """See the record's own."""
        self.events.append((task_id, kind))

    def tell_all(self, signals: list[Sequence[Any]]) -> dict[str, SignalState]:
        """See the record's own."""
        if not signals:
            return {}
        told = self.many("signals_insert", signals=signals)
        return {key: SignalState(state) for key, state, channel in told if channel == INBOX}

    def _execute(self, text: bytes, given: Mapping[str, Any], *, prepare: bool = True) -> Cursor:
        execute = self.connection.execute
        unsent, self._unsent = self._unsent, []
        if not unsent:
            return execute(text, given, prepare=prepare)
        with _pipeline(self.connection):
            first = [execute(each.text, each.values, prepare=True) for each in unsent]
            last = execute(text, given, prepare=prepare)
        for each, cursor in zip(unsent, first, strict=True):
            if each.then is not None:
                each.then(cursor.fetchall()[0])
        return last

    def _run(self, name: str, given: dict[str, Any]) -> list[Row]:
        statement = query(name)
        text = statement.text if self._acts_for is None else statement.of_tenant
        if name in _UNANSWERED:
            self.before_next(text, given)
            self.changes += 1
            self.ran.setdefault(name, [])
            return []
        cursor = self._execute(text, given)
        rows: list[Row] = []
        if cursor.description is not None:
            rows = [tuple(map(meant_value, row)) for row in cursor.fetchall()]
        if statement.writes and cursor.rowcount:
            self.changes += cursor.rowcount
            self.ran.setdefault(name, []).extend(rows)
        return rows


@contextlib.contextmanager
def _pipeline(connection: Connection) -> Generator[None]:
    """Statements in one round trip. Where an error leaves its block, psycopg writes into a log what

    goes wrong with the rest, and the terminal of whoever has set up none would show it.
    """
    failures: list[psycopg.Error] = []
    try:
        with connection.pipeline():
            try:
                yield
            except psycopg.Error as error:
                failures.append(error)
    except psycopg.Error as error:
        failures.append(error)
    if failures:
        raise failures[0]


def held(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a statement is given for many."""
    # Held before they are JSON, which would make of a NUL what no database takes either.
    return {
        key: to_json(held_value(value)) if isinstance(value, list) else _scalar(value)
        for key, value in values.items()
    }


def _scalar(value: Any) -> Any:
    return held_value(value.value if isinstance(value, Enum) else value)
