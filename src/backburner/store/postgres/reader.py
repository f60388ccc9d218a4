"""Reading the record: threads with a connection each, so that nobody waits in the event loop.

A connection that is lost, or silent, is made again, and the read is made then: it changes nothing.
Who stops waiting for that leaves no thread behind that goes on.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import psycopg

from backburner.model import clock
from backburner.model.errors import StoreClosed
from backburner.model.order import Wait
from backburner.model.states import State
from backburner.model.task import Task
from backburner.store.postgres.clock import DatabaseClock
from backburner.store.postgres.connection import (
    OWNER,
    PATIENCE_S,
    TENANT,
    Connection,
    connect,
    explain,
    explained,
    is_lost,
    refuse_standby,
    settings_of_a_look,
)
from backburner.store.postgres.footprint import READERS
from backburner.store.postgres.migrations import is_current, migrated
from backburner.store.postgres.pooler import Pooler
from backburner.store.postgres.statements import Statements
from backburner.store.postgres.texts import held
from backburner.store.record import reading
from backburner.store.record.leases import LeaseClock
from backburner.store.record.rows import to_json
from backburner.store.record.transaction import Row

Result = TypeVar("Result")

_AGAIN_S = 0.1

_WAITS_US = 2 * clock.SECOND
"""For so long a task may wait before anybody looks for who takes it: most begin sooner."""

_OF_EVERYONE = frozenset({"task_waits", "tasks_unserved", "owner_limit_any"})
"""What a task waits for is a matter of all others; it is looked up by the ids of one's own."""

_SET_OWNER = b"SELECT set_config('%s', %%(owner)s, false)" % OWNER.encode()


class Reader(reading.Reader):
    """The read half of the store, on one connection."""

    def __init__(self, connection: Connection, leases: LeaseClock) -> None:
        self._leases = leases
        self._statements = Statements(connection)

    def _rows(self, name: str, /, **values: Any) -> list[Row]:
        return self._statements.rows(name, **values)

    def _tasks(self, name: str, /, **values: Any) -> list[Task]:
        """Also those that wait for a worker say so, where there is none."""
        tasks = super()._tasks(name, **values)
        since = self._leases.time_of_day() - _WAITS_US
        late = [
            task.id
            for task in tasks
            if task.state is State.QUEUED and task.wait is None and task.created_at < since
        ]
        if not late:
            return tasks
        unserved = dict(self._rows("tasks_unserved", ids=to_json(late)))
        return [
            replace(task, wait=Wait(unserved=unserved[task.id])) if task.id in unserved else task
            for task in tasks
        ]

    @property
    def connection(self) -> Connection:
        """What it reads on."""
        return self._statements.connection

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class TenantReader(Reader):
    """The same for one owner at a time: on a connection that the database shows nothing else."""

    def __init__(self, connection: Connection, leases: LeaseClock, everyone: Reader) -> None:
        super().__init__(connection, leases)
        self._everyone = everyone
        self._shown: str | None = None
        self.owner = ""

    def _rows(self, name: str, /, **values: Any) -> list[Row]:
        if name in _OF_EVERYONE:
            return self._everyone.rows(name, **values)
        if self._shown != self.owner:
            # Where it fails the connection goes, and what it was set to with it.
            self._statements.before_next(_SET_OWNER, {"owner": held(self.owner)})
            self._shown = self.owner
        return self._statements.rows(name, **values)


class PooledReader(Reader):
    """The same through a pooler: each look is a transaction, which says itself for whom it is."""

    _owner: str | None = None

    def look(self, read: Callable[[reading.Reader], Result], owner: str | None) -> Result:
        """Carry out a read, of one owner or of all."""
        run, self._owner = self._statements, owner
        run.begin(last=settings_of_a_look(), begun=lambda row: refuse_standby(is_standby=row[0]))
        run.act_for(owner)
        try:
            found = read(self)
        except psycopg.Error:
            raise  # the connection goes
        except BaseException:
            run.roll_back()
            raise
        run.commit()
        return found

    def _rows(self, name: str, /, **values: Any) -> list[Row]:
        if name not in _OF_EVERYONE:
            return super()._rows(name, **values)
        self._statements.act_for(None)
        rows = super()._rows(name, **values)
        self._statements.act_for(self._owner)
        return rows


class Glancer(Reader):
    """One for a program that asks once and ends: failures come in our words."""

    def _rows(self, name: str, /, **values: Any) -> list[Row]:
        with explained():
            return super()._rows(name, **values)


def open_reader(address: str) -> Glancer:
    """A reader of the record, which is of the newest shape now."""
    return _glancer(migrated(address))


def reader_if_current(address: str) -> Glancer | None:
    """A reader where the record is there and needs no migration."""
    with explained():
        connection = connect(address, standby=True)
        try:
            current = is_current(connection)
        except BaseException:
            connection.close()
            raise
    if current:
        return _glancer(connection)
    connection.close()
    return None


def _glancer(connection: Connection) -> Glancer:
    try:
        return Glancer(connection, DatabaseClock.of(connection))
    except BaseException:
        connection.close()
        raise


class Readers:
    """As many as are needed at once."""

    def __init__(self, address: str, leases: LeaseClock, pooler: Pooler | None = None) -> None:
        """Over the ``pooler``, where there is one."""
        self._address = address
        self._leases = leases
        self._pooler = pooler
        self._threads = ThreadPoolExecutor(READERS, "backburner-reader")
        self._own = threading.local()
        self._all: set[Reader] = set()
        self._lost = ""
        """Why the last look came to nothing."""
        self._closed = False

    async def look(
        self, read: Callable[[reading.Reader], Result], owner: str | None = None
    ) -> Result:
        """Carry out a read, of one owner or of all."""
        loop = asyncio.get_running_loop()
        deadline = time.monotonic() + PATIENCE_S
        while True:
            if self._closed:
                raise StoreClosed("the record is closed", remedy="open it again")
            try:
                return await loop.run_in_executor(self._threads, self._read, read, owner, deadline)
            except psycopg.Error as error:
                if not is_lost(error) or time.monotonic() > deadline:
                    raise explain(error) from error
            await asyncio.sleep(_AGAIN_S)

    def _read(
        self,
        read: Callable[[reading.Reader], Result],
        owner: str | None,
        deadline: float,
    ) -> Result:
        if self._lost and time.monotonic() > deadline:  # it has waited for a thread until now
            raise psycopg.OperationalError(self._lost)
        try:
            if self._pooler is not None:
                found = self._pooled_reader(self._pooler).look(read, owner)
            else:
                found = read(self._reader() if owner is None else self._tenant_reader(owner))
        except psycopg.Error as error:
            self._lost = str(error) if is_lost(error) else ""
            self._forget()
            raise
        self._lost = ""
        return found

    def _reader(self) -> Reader:
        reader: Reader | None = getattr(self._own, "reader", None)
        if reader is None:
            reader = self._own.reader = Reader(connect(self._address), self._leases)
            self._all.add(reader)
        return reader

    def _tenant_reader(self, owner: str) -> Reader:
        reader: TenantReader | None = getattr(self._own, "tenant", None)
        if reader is None:
            everyone, connection = self._reader(), connect(self._address, role=TENANT)
            reader = self._own.tenant = TenantReader(connection, self._leases, everyone)
            self._all.add(reader)
        reader.owner = owner
        return reader

    def _pooled_reader(self, pooler: Pooler) -> PooledReader:
        reader: PooledReader | None = getattr(self._own, "pooled", None)
        if reader is None:
            reader = self._own.pooled = PooledReader(pooler.connect(), self._leases)
            self._all.add(reader)
        return reader

    def _forget(self) -> None:
        """All of this thread: one may read through another."""
        for name in ("reader", "tenant", "pooled"):
            reader: Reader | None = getattr(self._own, name, None)
            if reader is not None:
                setattr(self._own, name, None)
                self._all.discard(reader)
                reader.close()

    def close(self) -> None:
        """Close every connection; what is being read is read first."""
        self._closed = True
        self._threads.shutdown()
        for reader in self._all:
            reader.close()
