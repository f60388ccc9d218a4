"""The database of a home from behind: what no call of ours would ever do to it."""

from pathlib import Path
from typing import Any, cast

import apsw

from backburner.model.clock import SECOND
from backburner.model.home import Home

BUSY_MS = 30_000
"""A keeper may be writing, or closing the file, at this moment."""


def rows(home: Path, statement: str, *values: int | str) -> list[tuple[Any, ...]]:
    """Run a statement, and close the database again."""
    connection = apsw.Connection(Home(home).database)
    connection.set_busy_timeout(BUSY_MS)
    try:
        cursor: Any = cast("Any", connection).cursor()  # half of its types are unknown
        return list(cursor.execute(statement, values))
    finally:
        connection.close()


def set_start_back(home: Path, task_id: str, seconds: int) -> None:
    """As if a task that runs had been started so much earlier. Its keeper does not look again."""
    past = seconds * SECOND
    rows(home, "UPDATE task SET started_boot = started_boot - ? WHERE id = ?", past, task_id)


def set_all_back(home: Path, seconds: int) -> None:
    """As if all that there is had happened so much earlier."""
    times = ("created_at", "started_at", "finished_at", "started_boot")
    past = ", ".join(f"{name} = {name} - {seconds * SECOND}" for name in times)
    rows(home, f"UPDATE task SET {past}")


def is_intact(home: Path) -> bool:
    """Whether SQLite finds nothing wrong."""
    return rows(home, "PRAGMA integrity_check") == [("ok",)]
