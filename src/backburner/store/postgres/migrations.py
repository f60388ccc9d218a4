"""Bringing the database to the newest shape: numbered `.sql` files, each applied once.

A program may be one format behind: `oldest` says up to which one, so that machines are upgraded
one after another. One that is further behind is refused.
"""

import os
import re
from functools import cache

import psycopg

from backburner.model.errors import StoreUnusable
from backburner.store.postgres import engine
from backburner.store.postgres.connection import SCHEMA, TENANT, Connection, explained
from backburner.store.postgres.queries import SQL_FOLDER, sql_file
from backburner.store.postgres.statements import Statements

WRITERS = 0x42424E52
"""The advisory lock of whoever writes: "BBNR"."""

OLDEST = 1
"""The oldest format whose programs can work with the newest one."""

_NUMBERED = re.compile(r"(\d{4})_\w+\.sql")


@cache
def migrations() -> dict[int, str]:
    """The number and file name of every migration, in order."""
    matches = (_NUMBERED.fullmatch(name) for name in os.listdir(SQL_FOLDER))
    return dict(sorted((int(match[1]), match[0]) for match in matches if match))


def migrate(connection: Connection) -> None:
    """Apply what is missing."""
    with explained():
        if _number(connection) == max(migrations()):
            return
        run = Statements(connection).command
        run(b"BEGIN")
        try:
            run(b"SELECT pg_advisory_xact_lock(%d)" % WRITERS)
            run(b"CREATE SCHEMA IF NOT EXISTS %s" % SCHEMA.encode())
            _apply(connection)
            run(b"COMMIT")
        except psycopg.errors.InsufficientPrivilege as error:
            run(b"ROLLBACK")
            raise StoreUnusable(
                f"this user may not make what the record needs: {error.diag.message_primary}",
                remedy=f"let an administrator of the database run: CREATE ROLE {TENANT} NOLOGIN; "
                f'GRANT {TENANT} TO "{connection.info.user}"',
            ) from error
        except BaseException:
            if not connection.closed:
                run(b"ROLLBACK")
            raise


def _apply(connection: Connection) -> None:
    run = Statements(connection).command
    found, newest = _number(connection), max(migrations())
    missing = [name for number, name in migrations().items() if number > found]
    if not found:
        run(engine.schema().encode())
    for name in missing:
        run(sql_file(name).encode())
    if missing:
        run(
            b"INSERT INTO format (number, oldest) VALUES (%d, %d) ON CONFLICT (alone)"
            b" DO UPDATE SET number = excluded.number, oldest = excluded.oldest" % (newest, OLDEST)
        )


def _number(connection: Connection) -> int:
    """The format of the record; 0 where there is none yet."""
    run = Statements(connection).command
    if run(b"SELECT to_regclass('%s.format')" % SCHEMA.encode())[0][0] is None:
        return 0
    number, oldest = run(b"SELECT number, oldest FROM format")[0]
    refuse_newer(oldest, number)
    return number


def refuse_newer(oldest: int, number: int) -> None:
    """Raise StoreUnusable where the record has become one that this program does not understand.

    Asked in each transaction too: it may happen while we have it open.
    """
    known = max(migrations())
    if oldest > known:
        raise StoreUnusable(
            f"the record was written by a newer Backburner (format {number}, known: {known})",
            remedy="upgrade Backburner on this machine, and start this program again",
        )
