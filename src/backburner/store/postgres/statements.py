"""The named statements on a connection of PostgreSQL: the only code that hands values to it."""

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from backburner.model.signals import INBOX, SignalState
from backburner.store.postgres.connection import Connection
from backburner.store.postgres.queries import query
from backburner.store.postgres.texts import held_value, meant_value
from backburner.store.record import transaction
from backburner.store.record.rows import to_json
from backburner.store.record.transaction import Row


class Statements(transaction.Statements):
    """Runs the named statements on one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.changes = 0
        """How many rows were written."""
        self.ran: dict[str, list[Row]] = {}
        """The statements that wrote some of them in this transaction, and what those returned."""

    def command(self, text: bytes) -> list[Row]:
        """Run statements that have neither a name nor values; the rows of the last one."""
        return self.rows_of(text)[-1]

    def rows_of(self, text: bytes) -> list[list[Row]]:
        """The same; the rows of each."""
        cursor = self.connection.execute(text)
        return [[] if each.description is None else each.fetchall() for each in cursor.results()]

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
        # Held before they are JSON, which would make of a NUL what no database takes either.
        return self._run(
            name,
            {
                key: to_json(held_value(value)) if isinstance(value, list) else _scalar(value)
                for key, value in values.items()
            },
        )

    def found(self, name: str, /, **values: Any) -> list[list[Any]]:
        """See the record's own."""
        return [list(row) for row in self.many(name, **values)]

    def kept(self, text: str) -> str:
        """See the record's own."""
        return text

    def tell_all(self, signals: list[Sequence[Any]]) -> dict[str, SignalState]:
        """See the record's own."""
        if not signals:
            return {}
        told = self.many("signals_insert", signals=signals)
        return {key: SignalState(state) for key, state, channel in told if channel == INBOX}

    def _run(self, name: str, given: dict[str, Any]) -> list[Row]:
        statement = query(name)
        cursor = self.connection.execute(statement.text, given, prepare=True)
        rows: list[Row] = []
        if cursor.description is not None:
            rows = [tuple(map(meant_value, row)) for row in cursor.fetchall()]
        if statement.writes and cursor.rowcount:
            self.changes += cursor.rowcount
            self.ran.setdefault(name, []).extend(rows)
        return rows


def _scalar(value: Any) -> Any:
    return held_value(value.value if isinstance(value, Enum) else value)
