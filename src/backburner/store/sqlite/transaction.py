"""What happens inside one transaction: statements by name, and the steps that changes share.

The only code that hands values to SQLite, for reading and for writing.
"""

import json
from collections.abc import Sequence
from typing import Any, cast

import apsw

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.signals import NewSignal, SignalKind, SignalState
from backburner.model.task import Task
from backburner.model.wake import Wake, wake_of
from backburner.store.sqlite.queries import query
from backburner.store.sqlite.rows import storable, to_json, to_task

Row = tuple[Any, ...]
Start = tuple[str, int]
"""A boot, and a time in it."""


class Statements:
    """Runs the named statements on one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        # apsw's types name a class that Python 3.11 does not have, so they are unknown to us.
        self._execute: Any = connection.cursor().execute  # pyright: ignore[reportUnknownMemberType]

    def command(self, text: str) -> None:
        """Run a statement that has neither a name nor values: BEGIN and its like."""
        self._execute(text)

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Every row of a statement."""
        try:
            return self._execute(query(name), values).fetchall()
        except UnicodeEncodeError:  # nothing was run yet
            # Bytes that are no UTF-8, such as Python makes surrogates of in a file name. Escaped,
            # they come back as they were from JSON, and are readable in other texts.
            escaped = {key: _escape(value) for key, value in values.items()}
            return self._execute(query(name), escaped).fetchall()

    def row(self, name: str, /, **values: Any) -> Row | None:
        """The first row; the statement is run to its end."""
        rows = self.rows(name, **values)
        return rows[0] if rows else None

    def task(self, name: str, /, **values: Any) -> Task | None:
        """The task that a statement gives."""
        row = self.row(name, **values)
        return None if row is None else to_task(row)

    def add_event(self, task: Task, kind: EventKind, data: dict[str, Any]) -> None:
        """The event that goes with a change that the task's row has counted already."""
        self.rows("event_insert", task=task.seq, at=clock.now(), kind=kind, data=to_json(data))

    def many(self, name: str, /, **values: Any) -> list[Row]:
        """The same for many: a list among the values is given as JSON, with a list for each."""
        texts = {key: _as_json(value) for key, value in values.items()}
        try:
            return self._execute(query(name), texts).fetchall()
        except UnicodeEncodeError:  # escaped in each cell, as it would have been by itself
            return self._execute(
                query(name), {key: _as_json(_escape(value)) for key, value in values.items()}
            ).fetchall()

    def tell(
        self, task: Task, signal: NewSignal, now: Instant, *, start: Start | None = None
    ) -> None:
        """Tell the session of one thing, and its channels; see `telling`."""
        self.many("signals_insert", signals=[telling(task, signal, now, start=start)])

    def tell_all(self, signals: list[Sequence[Any]]) -> dict[str, SignalState]:
        """Tell sessions and their channels, each once; see `telling`.

        Answers what became of it in the inbox, by key: nothing of one that was told before.
        """
        if not signals:
            return {}
        (last,) = self.rows("signal_last")[0]
        self.many("signals_insert", signals=signals)
        (states,) = self.rows("signals_after", seq=last)[0]
        return {key: SignalState(state) for key, state in json.loads(states).items()}


def telling(
    task: Task, signal: NewSignal, now: Instant, *, start: Start | None = None
) -> Sequence[Any]:
    """A signal as `Statements.tell_all` takes it.

    ``start`` is the boot and the time in it from when on they may be told.
    """
    silent = signal.kind is SignalKind.MESSAGE and wake_of(task.spec) is Wake.SILENT
    return (
        signal.key, task.seq, task.owner, task.session, signal.kind, signal.text,
        to_json(signal.data), now, "the task is to be silent" if silent else None,
        *(start or (None, None)),
        "notify" in task.spec and signal.kind not in _NOT_ON_THE_SCREEN,
    )  # fmt: skip


_NOT_ON_THE_SCREEN = (SignalKind.CANCELED, SignalKind.MESSAGE)


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list | tuple):
        return [_escape(each) for each in cast("Sequence[Any]", value)]
    return value


def _as_json(value: Any) -> Any:
    return to_json(value) if isinstance(value, list) else value


def ending_data(ending: Ending, leftovers: int = 0) -> dict[str, Any]:
    """What an event and a signal say of an ending."""
    error = ending.error
    data = {
        "state": ending.state.value,
        "exit_code": ending.exit_code,
        "error": {"kind": error.kind.value, "message": error.message} if error else None,
        "summary": ending.summary,
        "leftovers": leftovers or None,
    }
    return {name: value for name, value in data.items() if value is not None}
