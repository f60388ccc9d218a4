"""Bringing the file to the newest shape: numbered `.sql` files, each applied once, under a lock."""

import os
import re
from collections.abc import Sequence
from functools import cache

import apsw

from backburner.model.errors import StoreUnusable
from backburner.store.sqlite.connection import (
    explained,
    is_empty,
    is_ours,
    mark_as_ours,
    pragma,
    set_pragma,
    use_wal,
    uses_wal,
)
from backburner.store.sqlite.queries import SQL_FOLDER, sql_file
from backburner.store.sqlite.statements import Statements

_NUMBERED = re.compile(r"(\d{4})_\w+\.sql")


@cache
def migrations() -> dict[int, str]:
    """The number and file name of every migration, in order."""
    matches = (_NUMBERED.fullmatch(name) for name in os.listdir(SQL_FOLDER))
    return dict(sorted((int(match[1]), match[0]) for match in matches if match))


def migrate(connection: apsw.Connection, *, up_to: int | None = None) -> None:
    """Apply what is missing. The caller holds the write lock of the home."""
    newest = max(migrations())
    with explained(connection.filename):
        if not is_ours(connection) and not is_empty(connection):
            raise StoreUnusable(
                f"{connection.filename} is a database of another program",
                remedy="choose another home with --home",
            )
        refuse_newer(connection)
        version = pragma(connection, "user_version")
        use_wal(connection)
        wanted = min(up_to or newest, newest)
        missing = [name for number, name in migrations().items() if version < number <= wanted]
        if missing:
            _apply(connection, wanted, [sql_file(name) for name in missing])


def _apply(connection: apsw.Connection, number: int, sql: Sequence[str]) -> None:
    """One transaction for all migrations, their number and our name: nobody sees half of them,

    and takes a new record for one that an older program has made.
    """
    run = Statements(connection).command
    run("BEGIN IMMEDIATE")
    try:
        for text in sql:
            run(text)
        set_pragma(connection, "user_version", number)
        mark_as_ours(connection)
        run("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it already
            run("ROLLBACK")
        raise


def refuse_newer(connection: apsw.Connection) -> None:
    """Raise StoreUnusable where a newer program has brought the record to another shape.

    Asked in each transaction too: it may happen while we have it open, and our statements would
    then write what the newer program does not expect.
    """
    version, newest = pragma(connection, "user_version"), max(migrations())
    if version > newest:
        raise StoreUnusable(
            f"the record was written by a newer Backburner (format {version}, known: {newest})",
            remedy="upgrade Backburner, or start this program again if that was just done",
        )


def is_older(connection: apsw.Connection) -> bool:
    """Whether it is a record of ours that an older program made, and may be using."""
    with explained(connection.filename):
        return is_ours(connection) and 0 < pragma(connection, "user_version") < max(migrations())


def is_current(connection: apsw.Connection) -> bool:
    """Whether nothing is missing."""
    with explained(connection.filename):
        return (
            is_ours(connection)
            and pragma(connection, "user_version") == max(migrations())
            and uses_wal(connection)
        )
