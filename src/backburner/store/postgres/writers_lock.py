"""The lock of the writers, of whom there is one at a time on all machines; and whoever has stopped

while holding it.
"""

import contextlib
import time
from typing import Any

import psycopg

from backburner.store.postgres.connection import HOLD_S, PATIENCE_S, Connection

WRITERS = 0x42424E52
"""Its number: "BBNR"."""

LOCK = b"SELECT pg_advisory_xact_lock(%d)" % WRITERS
LOCK_BEYOND = b"SELECT pg_advisory_lock(%d); SET idle_session_timeout = '%ds'" % (WRITERS, HOLD_S)
"""For longer than a transaction."""
UNLOCK = b"SET idle_session_timeout = 0; SELECT pg_advisory_unlock(%d)" % WRITERS

_HOLDER = b"""
    FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND classid = 0 AND objid = %(lock)s AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND wait_event_type = 'Client'
"""
"""Where it waits for its program, to be told something or to be heard."""
_SILENT_HOLDER = (
    b"SELECT pid, query_start, wait_event = 'ClientWrite',"
    b" extract(epoch FROM clock_timestamp() - state_change)::float8" + _HOLDER
)
_END = (
    b"SELECT pg_terminate_backend(pid)" + _HOLDER + b"AND pid = %(pid)s AND query_start = %(since)s"
)

READS_S = 60.0
"""Who reads a long answer slowly looks to the database like one who has stopped reading it."""

_LOOKS_EVERY_S = 0.5
_LEAST_LOOKS = 3
"""One that is slow, and not stopped, has gone on by then."""


def end_stopped_holder(connection: Connection) -> bool:
    """Whether the lock was held by somebody who had stopped (Ctrl-Z), and is free now.

    The database ends by itself who is silent in a transaction, but not whom it waits for in the
    middle of an answer or a question: a stopped program's kernel takes a little of it, and then no
    more, and says all the while that it is there. May block for as long as one may hold the lock.
    """
    deadline = time.monotonic() + HOLD_S
    first = seen = _silent_holder(connection)
    looks = 0
    while seen is not None and first is not None and seen[:2] == first[:2]:
        pid, since, reads, silent_s = seen
        if looks >= _LEAST_LOOKS and silent_s > (READS_S if reads else HOLD_S):
            with contextlib.suppress(psycopg.errors.InsufficientPrivilege):  # another user's
                return bool(
                    connection.execute(
                        _END, {"lock": WRITERS, "pid": pid, "since": since}
                    ).fetchall()
                )
            return False
        if time.monotonic() > deadline:  # whoever asks has others who wait
            return False
        time.sleep(_LOOKS_EVERY_S)
        seen = _silent_holder(connection)
        looks += 1
    return False


def _silent_holder(connection: Connection) -> tuple[Any, ...] | None:
    return connection.execute(_SILENT_HOLDER, {"lock": WRITERS}).fetchone()


def begin_locked(connection: Connection) -> None:
    """A transaction that writes. LockNotAvailable where there is no turn for as long as a change

    is tried.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        connection.execute(b"BEGIN")
        try:
            connection.execute(LOCK)
        except psycopg.errors.LockNotAvailable:
            connection.execute(b"ROLLBACK")
            if not end_stopped_holder(connection) and time.monotonic() > deadline:
                raise
        else:
            return
