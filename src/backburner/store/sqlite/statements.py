"""The named statements on a connection of SQLite: the only code that hands values to it."""

import json
from collections.abc import Sequence
from typing import Any, cast

import apsw

from backburner.model.signals import SignalState
from backburner.store.record import transaction
from backburner.store.record.rows import readable, to_json
from backburner.store.record.transaction import Row
from backburner.store.sqlite.queries import query


class Statements(transaction.Statements):
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
            escaped = {key: _escape(value) for key, value in values.items()}
            return self._execute(query(name), escaped).fetchall()

    def many(self, name: str, /, **values: Any) -> list[Row]:
        """See the record's own."""
        texts = {key: _as_json(value) for key, value in values.items()}
        try:
            return self._execute(query(name), texts).fetchall()
        except UnicodeEncodeError:  # escaped in each cell, as it would have been by itself
            return self._execute(
                query(name), {key: _as_json(_escape(value)) for key, value in values.items()}
            ).fetchall()

    def found(self, name: str, /, **values: Any) -> list[list[Any]]:
        """See the record's own."""
        return json.loads(self.many(name, **values)[0][0])

    def tell_all(self, signals: list[Sequence[Any]]) -> dict[str, SignalState]:
        """See the record's own."""
        if not signals:
            return {}
        (last,) = self.rows("signal_last")[0]
        self.many("signals_insert", signals=signals)
        (states,) = self.rows("signals_after", seq=last)[0]
        return {key: SignalState(state) for key, state in json.loads(states).items()}


def _escape(value: Any) -> Any:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, list | tuple):
        return [_escape(each) for each in cast("Sequence[Any]", value)]
    return value


def _as_json(value: Any) -> Any:
    return to_json(value) if isinstance(value, list) else value
