"""The database of a home from behind: what no call of ours would ever do to it."""

from pathlib import Path
from typing import Any, cast

import apsw

from backburner.model.home import Home


def rows(home: Path, statement: str, *values: int | str) -> list[tuple[Any, ...]]:
    """Run a statement, and close the database again."""
    connection = apsw.Connection(Home(home).database)
    try:
        cursor: Any = cast("Any", connection).cursor()  # half of its types are unknown
        return list(cursor.execute(statement, values))
    finally:
        connection.close()


def is_intact(home: Path) -> bool:
    """Whether SQLite finds nothing wrong."""
    return rows(home, "PRAGMA integrity_check") == [("ok",)]
