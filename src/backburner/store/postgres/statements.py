"""The named statements on a connection of PostgreSQL: the only code that hands values to it."""

import json
from enum import Enum
from typing import Any

from backburner.store.postgres.connection import Connection
from backburner.store.postgres.queries import query
from backburner.store.postgres.texts import held_value, meant_value
from backburner.store.record import transaction
from backburner.store.record.transaction import Row


class Statements(transaction.Statements):
    """Runs the named statements on one connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.changes = 0
        """How many rows were written."""
        self.ran: set[str] = set()
        """The statements that wrote some of them in this transaction."""

    def command(self, text: bytes) -> list[Row]:
        """Run statements that have neither a name nor values; the rows of the last one."""
        return self.rows_of(text)[-1]

    def rows_of(self, text: bytes) -> list[list[Row]]:
        """The same; the rows of each."""
        cursor = self.connection.execute(text)
        return [[] if each.description is None else each.fetchall() for each in cursor.results()]

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Every row of a statement."""
        statement = query(name)
        given = {
            key: _list(value) if key in statement.lists else _scalar(value)
            for key, value in values.items()
        }
        cursor = self.connection.execute(statement.text, given, prepare=True)
        if statement.writes:
            self.changes += cursor.rowcount
            if cursor.rowcount:
                self.ran.add(name)
        if cursor.description is None:
            return []
        return [tuple(map(meant_value, row)) for row in cursor.fetchall()]


def _scalar(value: Any) -> Any:
    return held_value(value.value if isinstance(value, Enum) else value)


def _list(value: str) -> list[Any]:
    return [held_value(item) for item in json.loads(value)]
