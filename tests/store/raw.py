"""SQLite without any of our rules: what another program, or a bug, could do to the file."""

from pathlib import Path
from typing import Any, Self

import apsw


class Raw:
    """A connection for a `with` block; call it with SQL, the answer is the rows."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.set_busy_timeout(30_000)  # others may be writing at this moment
        # apsw's types name a class that Python 3.11 does not have, so they are unknown to us.
        self._execute: Any = self._connection.cursor().execute  # pyright: ignore[reportUnknownMemberType]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        return self._execute(sql).fetchall()


def check_file(path: Path) -> None:
    """SQLite finds nothing wrong with the file."""
    with Raw(path) as raw:
        assert raw("PRAGMA integrity_check") == [("ok",)]
        assert raw("PRAGMA foreign_key_check") == []
