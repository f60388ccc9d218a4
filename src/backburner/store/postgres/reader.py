"""Reading the record: threads with a connection each, so that nobody waits in the event loop.

A connection that is lost is made again, and the read is made then: it changes nothing.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg

from backburner.model.errors import StoreClosed
from backburner.store.postgres.clock import DatabaseClock
from backburner.store.postgres.connection import (
    PATIENCE_S,
    Connection,
    connect,
    explain,
    explained,
    is_lost,
)
from backburner.store.postgres.migrations import is_current, migrate
from backburner.store.postgres.statements import Statements
from backburner.store.record import reading
from backburner.store.record.leases import LeaseClock
from backburner.store.record.transaction import Row

Result = TypeVar("Result")

_READERS = 4
"""Connections that one process reads through at once; more wait."""

_AGAIN_S = 0.1


class Reader(reading.Reader):
    """The read half of the store, on one connection."""

    def __init__(self, connection: Connection, leases: LeaseClock) -> None:
        self._leases = leases
        self._statements = Statements(connection)

    def _rows(self, name: str, /, **values: Any) -> list[Row]:
        return self._statements.rows(name, **values)

    def close(self) -> None:
        """Close the connection."""
        self._statements.connection.close()


class Glancer(Reader):
    """One for a program that asks once and ends: failures come in our words."""

    def _rows(self, name: str, /, **values: Any) -> list[Row]:
        with explained():
            return super()._rows(name, **values)


def open_reader(address: str) -> Glancer:
    """A reader of the record, which is of the newest shape now."""
    with explained():
        connection = connect(address)
    try:
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return Glancer(connection, DatabaseClock())


def reader_if_current(address: str) -> Glancer | None:
    """A reader where the record is there and needs no migration."""
    with explained():
        connection = connect(address)
        if is_current(connection):
            return Glancer(connection, DatabaseClock())
        connection.close()
        return None


class Readers:
    """As many as are needed at once."""

    def __init__(self, address: str, leases: LeaseClock) -> None:
        self._address = address
        self._leases = leases
        self._threads = ThreadPoolExecutor(_READERS, "backburner-reader")
        self._own = threading.local()
        self._all: set[Reader] = set()
        self._closed = False

    async def look(self, read: Callable[[reading.Reader], Result]) -> Result:
        """Carry out a read."""
        if self._closed:
            raise StoreClosed("the record is closed", remedy="open it again")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._read_patiently, read)

    def _read_patiently(self, read: Callable[[reading.Reader], Result]) -> Result:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return read(self._reader())
            except psycopg.Error as error:
                self._forget()
                if not is_lost(error) or time.monotonic() > deadline:
                    raise explain(error) from error
            time.sleep(_AGAIN_S)

    def _reader(self) -> Reader:
        reader: Reader | None = getattr(self._own, "reader", None)
        if reader is None:
            reader = self._own.reader = Reader(connect(self._address), self._leases)
            self._all.add(reader)
        return reader

    def _forget(self) -> None:
        reader: Reader | None = getattr(self._own, "reader", None)
        if reader is not None:
            self._own.reader = None
            self._all.discard(reader)
            reader.close()

    def close(self) -> None:
        """Close every connection; what is being read is read first."""
        self._closed = True
        self._threads.shutdown()
        for reader in self._all:
            reader.close()
