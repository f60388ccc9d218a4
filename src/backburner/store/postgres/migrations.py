"""Bringing the database to the newest shape: numbered `.sql` files, each applied once.

A program may be one format behind: `oldest` says up to which one, so that machines are upgraded
one after another. One that is further behind is refused.
"""

import math
import os
import re
from functools import cache

import psycopg

from backburner.model.errors import StoreUnusable
from backburner.model.values import value
from backburner.store.postgres import engine
from backburner.store.postgres.connection import (
    SCHEMA,
    TENANT,
    Connection,
    as_its_owner,
    connect,
    explained,
    is_read_only,
    is_standby,
    only_read,
)
from backburner.store.postgres.queries import SQL_FOLDER, sql_file
from backburner.store.postgres.shape import refuse_without_rights
from backburner.store.postgres.silence import SILENCE_S
from backburner.store.postgres.statements import Statements
from backburner.store.postgres.writers_lock import begin_locked

OLDEST = 6
"""The oldest format whose programs can work with the newest one: all that they ask the database for

has to be there, and to mean the same.
"""

_SEEN = (
    f"SELECT to_regclass('{SCHEMA}.format') IS NOT NULL,"
    f" coalesce(row_security_active(to_regclass('{SCHEMA}.task')::oid), false)"
).encode()
"""Whether there is a record, and whether policies hide it. They are for who acts for an owner, and

would let anybody else see a record without tasks, and so a broken one.
"""

_HAS_SCHEMA = f"SELECT to_regnamespace('{SCHEMA}') IS NOT NULL".encode()

_RIGHTS = f"""
    SELECT quote_ident(current_user), quote_ident(current_database()),
           has_database_privilege(current_database(), 'CREATE'),
           to_regnamespace('{SCHEMA}') IS NOT NULL,
           to_regrole('{TENANT}') IS NOT NULL,
           coalesce(pg_has_role(to_regrole('{TENANT}'), CASE
               WHEN current_setting('server_version_num')::int < 160000
               THEN 'MEMBER' ELSE 'SET' END), false)
""".encode()

_NUMBERED = re.compile(r"(\d{4})_\w+\.sql")


@cache
def migrations() -> dict[int, str]:
    """The number and file name of every migration, in order."""
    matches = (_NUMBERED.fullmatch(name) for name in os.listdir(SQL_FOLDER))
    return dict(sorted((int(match[1]), match[0]) for match in matches if match))


def newest() -> int:
    """The number of the last one."""
    return max(migrations())


@value
class Format:
    """The shape of a record."""

    number: int
    """0 where there is no record yet."""
    oldest: int
    """The oldest one whose programs can go on with it."""

    @property
    def missing(self) -> list[str]:
        """The migrations that would bring it up to date."""
        return [name for number, name in migrations().items() if number > self.number]


def migrated(address: str) -> Connection:
    """A connection to the database, which is of the newest shape now."""
    with explained():
        connection = connect(address, standby=True)
    try:
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def opened(address: str, *, writes: bool = False) -> Connection:
    """The same, for whoever has the record open: StoreAway where that cannot be.

    A server that follows another one lets nobody listen, and so nobody wait for a change. Who
    ``writes`` from the beginning is refused by what can only be read, too.
    """
    connection = migrated(address)
    try:
        with explained():
            _refuse_what_only_reads(connection, writes=writes)
            refuse_without_rights(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _refuse_what_only_reads(connection: Connection, *, writes: bool) -> None:
    if is_standby(connection):
        raise only_read("it follows another")
    if writes and is_read_only(connection):
        raise only_read("this user, or it, is set so")


def migrate(connection: Connection) -> list[str]:
    """Apply what is missing. Answers what that was."""
    with explained():
        if is_current(connection):
            return []
        run = Statements(connection).command
        begin_locked(connection)
        try:
            if not run(_HAS_SCHEMA)[0][0]:  # to ask for one that is there needs the right, too
                run(b"CREATE SCHEMA %s" % SCHEMA.encode())
            connection.silence_s = math.inf  # a large table may take long
            applied = _apply(connection)
            connection.silence_s = SILENCE_S
            run(b"COMMIT")
        except psycopg.errors.InsufficientPrivilege as error:
            run(b"ROLLBACK")
            raise StoreUnusable(
                f"this user may not make what the record needs: {error.diag.message_primary}",
                remedy=_what_is_missing(connection),
            ) from error
        except BaseException:
            if not connection.closed:
                run(b"ROLLBACK")
            raise
    return applied


def _what_is_missing(connection: Connection) -> str:
    """What somebody has to allow this user, who could not make or change the record."""
    run = Statements(connection).command
    user, database, may_create, has_schema, has_role, is_member = run(_RIGHTS)[0]
    grants: list[str] = []
    if not has_schema and not may_create:
        grants.append(f"GRANT CREATE ON DATABASE {database} TO {user}")
    if not has_role:
        grants.append(f"CREATE ROLE {TENANT} NOLOGIN")
    if not is_member:
        grants.append(f"GRANT {TENANT} TO {user}")
    if not grants:
        return as_its_owner()
    return f"let an administrator of the database run: {'; '.join(grants)}"


def is_current(connection: Connection) -> bool:
    """Whether nothing is missing. A newer record that we understand is left as it is."""
    return _number(connection) >= newest()


def _apply(connection: Connection) -> list[str]:
    run = Statements(connection).command
    _number(connection)  # it may have become one that we do not understand
    found = format_of(connection)
    missing = found.missing
    if not found.number:
        run(engine.schema().encode())
    for name in missing:
        run(sql_file(name).encode())
    if missing:
        run(
            b"INSERT INTO format (number, oldest) VALUES (%d, %d) ON CONFLICT (alone)"
            b" DO UPDATE SET number = excluded.number, oldest = excluded.oldest"
            % (newest(), OLDEST)
        )
    return missing


def format_of(connection: Connection) -> Format:
    """What shape it has, also where that is too new for us."""
    run = Statements(connection).command
    is_there, hides = run(_SEEN)[0]
    if hides:
        raise StoreUnusable(
            "this user of the database does not see the record: it belongs to another one",
            remedy=as_its_owner(),
        )
    if not is_there:
        return Format(0, 0)
    return Format(*run(b"SELECT number, oldest FROM format")[0])


def _number(connection: Connection) -> int:
    found = format_of(connection)
    refuse_newer(found.oldest, found.number)
    return found.number


def refuse_newer(oldest: int, number: int) -> None:
    """Raise StoreUnusable where the record has become one that this program does not understand.

    Asked in each transaction too: it may happen while we have it open.
    """
    known = newest()
    if oldest > known:
        raise StoreUnusable(
            f"the record was written by a newer Backburner (format {number}, known: {known})",
            remedy="upgrade Backburner on this machine, and start this program again",
        )
