"""Opening the database file safely.

Promises: never an SQLite with the WAL race, never the standard library's driver, every failure
to open said in words a person can act on.
"""

import contextlib
import os
from collections.abc import Generator

import apsw

from backburner.model.errors import StoreBusy, StoreError, StoreFull, StoreUnusable
from backburner.store.sqlite import wal

_RACE_FIRST = (3, 7, 0)
_RACE_LAST = (3, 51, 2)
"""Versions in between can corrupt a WAL database when a writer and a checkpoint in different
connections meet at the wrong moment."""

BUSY_MS = 10_000
"""Our own writers queue at a lock file, so only a foreign program can make SQLite busy."""

_APPLICATION_ID = 0x42424E52  # "BBNR"


def sqlite_version() -> str:
    """The SQLite that apsw brought."""
    return apsw.sqlite_lib_version()


def refuse_unsafe_sqlite(version: str) -> None:
    """Raise StoreUnusable where this SQLite could corrupt the record."""
    number = tuple(int(part) for part in version.split("."))
    if _RACE_FIRST <= number <= _RACE_LAST:
        raise StoreUnusable(
            f"SQLite {version} can corrupt a database that several processes write to",
            remedy="install a newer apsw: pip install --upgrade 'apsw>=3.51.3'",
        )


def connect(path: str, *, readonly: bool = False, create: bool = True) -> apsw.Connection:
    """A connection with the settings that the promise needs."""
    refuse_unsafe_sqlite(sqlite_version())
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    with explained(path):
        connection = apsw.Connection(path, flags=flags)
        connection.set_busy_timeout(BUSY_MS)
        wal.keep(connection)
        if readonly:
            # Not opened read-only: a reader must be able to recover the WAL after a crash.
            set_pragma(connection, "query_only", "ON")
        # FULL: a commit that returned is on disk, also after a power cut.
        set_pragma(connection, "synchronous", "FULL")
        set_pragma(connection, "foreign_keys", "ON")
        set_pragma(connection, "cache_size", -4096)
        set_pragma(connection, "temp_store", "MEMORY")  # savepoints would make a file each
        # Plans that do not depend on the values: or a join is planned anew at every execution.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    return connection


def is_ours(connection: apsw.Connection) -> bool:
    """Whether the file was made by Backburner."""
    return pragma(connection, "application_id") == _APPLICATION_ID


def is_empty(connection: apsw.Connection) -> bool:
    """Whether no program has put anything into the file."""
    names = ("application_id", "user_version", "schema_version")
    return all(pragma(connection, name) == 0 for name in names)


def mark_as_ours(connection: apsw.Connection) -> None:
    """Write our name into the header of the file."""
    set_pragma(connection, "application_id", _APPLICATION_ID)


def uses_wal(connection: apsw.Connection) -> bool:
    """Whether readers and the writer do not wait for each other; a restored copy may not."""
    return connection.pragma("journal_mode") == "wal"  # pyright: ignore[reportUnknownMemberType]


def use_wal(connection: apsw.Connection) -> None:
    """Once for a file, alone: SQLite does not wait for others here, it fails."""
    set_pragma(connection, "journal_mode", "WAL")


def pragma(connection: apsw.Connection, name: str) -> int:
    """A number that SQLite keeps about the file or the connection."""
    # apsw's types name a class that Python 3.11 does not have, so they are unknown to us.
    return int(connection.pragma(name))  # pyright: ignore[reportUnknownMemberType]


def set_pragma(connection: apsw.Connection, name: str, value: int | str) -> None:
    """Set one."""
    connection.pragma(name, value)  # pyright: ignore[reportUnknownMemberType]


@contextlib.contextmanager
def explained(path: str) -> Generator[None]:
    """SQLite's failures, in our words."""
    try:
        yield
    except apsw.Error as error:
        raise explain(error, path) from error


def explain(error: apsw.Error, path: str) -> StoreError:
    """The same failure in our words, with a remedy."""
    folder = os.path.dirname(path)
    # SHMSIZE: no room for the index of the WAL, which the first one to open the file makes.
    no_index = getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE
    if isinstance(error, apsw.FullError) or no_index:
        return StoreFull(
            f"no room on the disk for the record in {folder}", remedy="free some space"
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreBusy(
            f"another program has locked {path} for more than {BUSY_MS // 1000} s",
            remedy="close the program that has the database open",
        )
    if isinstance(error, apsw.ReadOnlyError):
        return StoreUnusable(
            f"the record in {folder} cannot be written to",
            remedy="check permissions, and whether the file system is mounted read-only",
        )
    if isinstance(error, apsw.CantOpenError):
        return StoreUnusable(
            f"the record {path} cannot be opened", remedy="check that the folder is writable"
        )
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreUnusable(
            f"the record {path} is damaged or is no database of ours",
            remedy="restore it from a back-up, or choose another home with --home",
        )
    if isinstance(error, apsw.IOError):
        return StoreError(f"reading or writing {path} failed: {error}", remedy="check the disk")
    return StoreError(f"the record {path} could not be used: {error}")
