"""Looking at the whole file of an embedded record, for whoever has to keep it well. Only reads."""

import os

import apsw

from backburner.store.sqlite.connection import connect, explained, pragma
from backburner.store.sqlite.migrations import migrations


def format_of(path: str) -> int:
    """The format of the record; 0 where there is none yet."""
    if not os.path.exists(path):
        return 0
    connection = connect(path, readonly=True, create=False)
    try:
        with explained(path):
            return pragma(connection, "user_version")
    finally:
        connection.close()


def newest_format() -> int:
    """Of this program."""
    return max(migrations())


def missing(number: int) -> list[str]:
    """The migrations that a record of this format lacks."""
    return [name for each, name in migrations().items() if each > number]


def problems(path: str) -> list[str]:
    """What is wrong with the file, in the words of SQLite."""
    connection = connect(path, readonly=True, create=False)
    try:
        with explained(path):
            found = [str(row[0]) for row in _rows(connection, "PRAGMA integrity_check(10)")]
            broken = [
                f"{row[0]}: a row names one of {row[2]} that is not there"
                for row in _rows(connection, "PRAGMA foreign_key_check")
            ]
    finally:
        connection.close()
    return [each for each in found if each != "ok"] + broken[:10]


def _rows(connection: apsw.Connection, command: str) -> list[tuple[object, ...]]:
    return list(connection.execute(command))  # pyright: ignore[reportUnknownMemberType] - of apsw
