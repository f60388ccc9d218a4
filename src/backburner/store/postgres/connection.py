"""Connections to the database, and its failures in our words.

Promises: a connection that is cut off, or whose other end hangs, is noticed within half a minute; a
transaction that is left open ends; no error holds a password.
"""

import contextlib
import re
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

from backburner.model.database import check_address
from backburner.model.errors import (
    StoreAway,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreUnusable,
    UsageError,
)
from backburner.store.postgres.silence import Connection

SCHEMA = "backburner"
"""Our tables, and those of the engine, stand apart from what else the database holds."""

TENANT = "backburner_tenant"
"""The role that sees, and changes, what belongs to one owner and nothing else."""

OWNER = "backburner.owner"
"""The setting that says which owner."""

PATIENCE_S = 20.0
"""How long a change or a look waits for a database that restarts or is cut off."""

HOLD_S = 10.0
"""How long the lock of the writers may be held by one that says nothing; and after how long whoever
waits for it looks who that is (`writers_lock.py`)."""

POOLED_SILENCE_S = 15.0
"""How long a pooler may be silent, which answers for a wire that is cut behind it: less than a look
is tried for, so there is another one."""

_SETTINGS = {
    "search_path": SCHEMA,
    # Who holds the lock of the writers and stops (Ctrl-Z, a cut cable) must not keep all others.
    "idle_in_transaction_session_timeout": f"{HOLD_S:g}s",
    "lock_timeout": f"{HOLD_S:g}s",
    "statement_timeout": "60s",
    "jit": "off",
    "timezone": "UTC",
    # The database, too, notices who is gone without a word, and lets go of what it held.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "3",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15000",
    # The promise says: on disk.
    "synchronous_commit": "on",
}
_OF_A_LOOK = (
    "search_path",
    "idle_in_transaction_session_timeout",
    "statement_timeout",
    "jit",
    "timezone",
)
_LINE = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


_CHOSEN = re.compile(r"(?:-c\s*|--)(\w+)=")

Cursor = psycopg.Cursor[tuple[Any, ...]]


def conninfo(address: str, *, standby: bool = False) -> str:
    """What libpq takes; what the address itself says wins.

    Of several hosts it is the one that follows no other, unless a ``standby`` will do.
    """
    check_address(address)
    try:
        given = conninfo_to_dict(address)
        given.setdefault("application_name", "backburner")
        if not standby and "," in f"{given.get('host')}{given.get('hostaddr')}":
            given.setdefault("target_session_attrs", "primary")
        return make_conninfo("", **{**_LINE, **given})
    except psycopg.ProgrammingError as error:
        raise UsageError(
            "the address of the database has an option that nobody knows",
            remedy="write it as postgresql://user@host:5432/database?sslmode=require",
        ) from error


def settings(address: str, **more: str) -> bytes:
    """The first statements on a connection; what the address itself says wins.

    Not options of the connection: a pooler takes none of those.
    """
    chosen = set(_CHOSEN.findall(str(conninfo_to_dict(address).get("options") or "")))
    both = {name: value for name, value in {**_SETTINGS, **more}.items() if name not in chosen}
    return "; ".join(f"SET {name} = '{value}'" for name, value in both.items()).encode()


def settings_of_a_look() -> bytes:
    """What a transaction that only reads wants of a session that may be another one next time. It

    gives whether that is one of a server that follows another.
    """
    chosen = (f"set_config('{name}', '{_SETTINGS[name]}', true)" for name in _OF_A_LOOK)
    return f"SELECT pg_is_in_recovery(), {', '.join(chosen)}".encode()


def connect(address: str, *, standby: bool = False, **more: str) -> Connection:
    """A connection that commits by itself, unless a transaction is begun.

    psycopg.Error where there is none to be had; the caller may try again. A server that only
    follows another one may lack what was just written, and its heartbeats are old: it will do for
    a ``standby`` alone, where the caller says what it is.
    """
    connection = Connection.connect(conninfo(address, standby=standby), autocommit=True)
    try:
        follows = _last_row(connection, settings(address, **more) + b"; " + _FOLLOWS)[0]
        refuse_standby(is_standby=follows and not standby)
        _refuse_shared_sessions(address, connection)
    except BaseException:
        connection.close()
        raise
    return _adapted(connection)


def connect_pooled(address: str) -> Connection:
    """The same through a pooler, which may lead each transaction to another session: nothing is set

    or prepared for longer.
    """
    connection = Connection.connect(conninfo(address), autocommit=True, prepare_threshold=None)
    connection.silence_s = POOLED_SILENCE_S
    return _adapted(connection)


def _last_row(connection: Connection, statements: bytes) -> tuple[Any, ...]:
    """Of several, sent together."""
    cursor = connection.execute(statements)
    while cursor.nextset():
        pass
    (row,) = cursor.fetchall()
    return row


def _adapted(connection: Connection) -> Connection:
    # One type for each kind of value: else a statement is planned anew for each size of number,
    # and what a text is compared with would be checked as if it were to be written.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(str, StrDumper)
    return connection


_OF_ANOTHER_SESSION = (
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.DuplicatePreparedStatement,
)
"""A statement that was prepared is not there, or one that was not is."""

_LOOKS = 5
"""Where others keep a pooler busy, up to one look in ten finds the session of before by chance."""

_own_sessions: set[str] = set()
"""Addresses at which each connection was found to have a session of its own."""


def _refuse_shared_sessions(address: str, connection: Connection) -> None:
    """StoreUnusable where a pooler gives one session of the database to several connections.

    What one has prepared, listens to or has set, its role too, is then found, or missed, by
    another: tables seem to be missing, or to belong to somebody else.
    """
    if address in _own_sessions:
        return
    session = _session(connection)
    if session != connection.info.backend_pid:  # somebody is between
        with Connection.connect(conninfo(address), autocommit=True) as other:
            for _ in range(_LOOKS):
                other.execute(b"BEGIN", prepare=False)  # from here on it has one for itself
                if _session(other) == session or _session(connection) != session:
                    raise _shared_sessions()
                other.execute(b"ROLLBACK", prepare=False)
                if _session(connection) != session:  # a pooler gives first what it got last
                    raise _shared_sessions()
    _own_sessions.add(address)


def _session(connection: Connection) -> int:
    """Not prepared, as what is asked often is: a session of others may have that statement."""
    (row,) = connection.execute(b"SELECT pg_backend_pid()", prepare=False).fetchall()
    return row[0]


def _shared_sessions() -> StoreUnusable:
    return StoreUnusable(
        "a pooler in transaction mode is between this program and the database",
        remedy="connect to the database itself, or to a pool in session mode (pool_mode=session);"
        " a pool of transactions is for reading: BACKBURNER_POOLER=postgresql://…",
    )


ReadOnly = psycopg.errors.ReadOnlySqlTransaction
"""Where nothing can be written: on a server that follows another one, or as this user."""

_LOST = (psycopg.OperationalError, psycopg.InterfaceError, ReadOnly)


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, or no good any more, and another one may do.

    After a failover an old one may lead to a server that is not written to any more.
    """
    return isinstance(error, _LOST) and not isinstance(
        error,
        (psycopg.errors.DiskFull, psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable),
    )


_FOLLOWS = b"SELECT pg_is_in_recovery()"
"""Whether it only follows another one. A server says that by itself, too, but a pooler repeats what
an earlier one has said."""
_ONLY_READS = b"SELECT current_setting('transaction_read_only')::boolean"


def is_standby(connection: Connection) -> bool:
    """Whether the server only follows another one."""
    return _last_row(connection, _FOLLOWS)[0]


def refuse_standby(*, is_standby: bool) -> None:
    """As if nobody had answered: at the next try it may be the server that is written to."""
    if is_standby:
        raise psycopg.OperationalError("this server only follows another one")


def is_read_only(connection: Connection) -> bool:
    """Whether nothing can be written over it, for whatever reason."""
    return _last_row(connection, _ONLY_READS)[0]


def only_read(said: str) -> StoreAway:
    """Nothing can be written at present."""
    return StoreAway(f"the database can only be read: {said}", remedy=_WRITTEN_TO)


_WRITTEN_TO = (
    "give the address of the server that is written to; where it is that one, see what this user"
    " and the database have set: default_transaction_read_only has to be off"
)


@contextlib.contextmanager
def explained() -> Generator[None]:
    """Failures of the database, in our words."""
    try:
        yield
    except psycopg.Error as error:
        raise explain(error) from error


def as_its_owner() -> str:
    """The remedy for whom it does not let do something."""
    return (
        "connect as the user that made the record, or let its owner grant this one that"
        f" user's rights: GRANT owner TO this_user (the schema is {SCHEMA})"
    )


def explain(error: psycopg.Error) -> StoreError:
    """The same failure in our words, with a remedy."""
    # Without the statement: of a function of the database it is a page.
    said = " ".join((error.diag.message_primary or str(error)).split()) or type(error).__name__
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreFull("no room on the disk of the database", remedy="free some space")
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return StoreBusy(
            f"another process has been writing to the record for more than {PATIENCE_S:g} s",
            remedy="see who holds an advisory lock in pg_locks, and end that one",
        )
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return StoreUnusable(
            f"the database refused: {said}",
            remedy=as_its_owner(),
        )
    if isinstance(error, _OF_ANOTHER_SESSION):
        return _shared_sessions()
    if isinstance(error, ReadOnly):
        return only_read(said)
    if is_lost(error):
        return StoreAway(
            f"the database cannot be reached: {said}",
            remedy="check its address, and that it runs and lets this user in",
        )
    return StoreError(f"the database refused: {said}")
