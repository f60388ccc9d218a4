"""The named statements on a connection of SQLite: the only code that hands values to it."""

from typing import Any

import apsw

from backburner.store.record import transaction
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
            # Bytes that are no UTF-8, such as Python makes surrogates of in a file name. Escaped,
            # they come back as they were from JSON, and are readable in other texts.
            escaped = {key: _escape(value) for key, value in values.items()}
            return self._execute(query(name), escaped).fetchall()


def _escape(value: Any) -> Any:
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
