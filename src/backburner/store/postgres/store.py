"""The shared store: one PostgreSQL database that many machines read and write."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from backburner.model.errors import StoreAway
from backburner.store.news import News
from backburner.store.postgres.admission import admission
from backburner.store.postgres.attachments import Attachments
from backburner.store.postgres.clock import DatabaseClock
from backburner.store.postgres.connection import PATIENCE_S, Connection
from backburner.store.postgres.engine import Procrastinate
from backburner.store.postgres.inputs import Inputs
from backburner.store.postgres.migrations import opened
from backburner.store.postgres.mirror import Mirror
from backburner.store.postgres.nodes import Nodes
from backburner.store.postgres.pooler import Pooler
from backburner.store.postgres.reader import Readers
from backburner.store.postgres.secrets import Secrets
from backburner.store.postgres.wake import Listener
from backburner.store.postgres.writer import Writer
from backburner.store.protocol import Scope
from backburner.store.record import reading
from backburner.store.record.record import Record

Result = TypeVar("Result")


class PostgresStore(Record, Mirror, Nodes, Inputs, Attachments, Secrets):
    """See `backburner.store.protocol.Store` for what each method promises."""

    def __init__(
        self,
        address: str,
        connection: Connection,
        clock: DatabaseClock,
        pooler: Pooler | None = None,
    ) -> None:
        """The record is of the newest shape. `open_store` is the way in."""
        self._leases = clock
        super().__init__()
        self._readers = Readers(address, clock, pooler)
        self._writer = self._commits = Writer(
            address, connection, clock, self._changed, admission(Procrastinate())
        )
        self._listener = Listener(address, self._woken, self._outage)
        self._closed = False

    async def begun(self) -> None:
        """Wait until every change is heard of; where that cannot be it is closed, and StoreAway."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._listener.begun()
        except BaseException as error:
            await self.close()
            if not isinstance(error, TimeoutError):
                raise
            raise StoreAway(
                "the database lets nobody in who would hear of changes",
                remedy="see that it runs, and has connections left: max_connections, and the limit"
                " of this user",
            ) from None

    def _woken(self, writer: int, news: News | None) -> None:
        if not writer:  # a database that was started anew may give our number to somebody else
            self._commits.backend = 0
        if not writer or writer != self._commits.backend:
            self._changed(news)

    @property
    def tells(self) -> bool:
        return True

    @property
    def breaks(self) -> int:
        """It grows when the database is lost, and when it is there again: it may have crashed."""
        return self._listener.breaks

    @property
    def outdated(self) -> bool:
        return self._commits.outdated is not None

    async def check_format(self) -> None:
        """StoreUnusable where the record has become one that this program does not understand. Who

        writes is told by itself; this is for who has nothing to write.
        """
        (found,) = await self._look(lambda read: read.rows("format_now"))
        self._commits.refuse_newer(*found)

    async def _look(
        self, read: Callable[[reading.Reader], Result], scope: Scope | None = None
    ) -> Result:
        if self._commits.outdated is not None:
            raise self._commits.outdated
        return await self._readers.look(read, scope and scope.owner)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._listener.close()
        # Off the loop, so that callers who still wait for the last commit get their answers.
        await asyncio.to_thread(self._commits.close)
        await asyncio.to_thread(self._readers.close)


def opened_with(
    address: str, pooler: str, *, writes: bool = False
) -> tuple[Connection, DatabaseClock, Pooler | None]:
    """A connection to the record, of the newest shape, what time it is there, and what it is read

    over, if anything. To be asked what is due or free it has to know the time from the beginning.
    """
    connection = opened(address, writes=writes)
    try:
        over = Pooler(pooler, connection) if pooler else None
        return connection, DatabaseClock.of(connection), over
    except BaseException:
        connection.close()
        raise


async def open_store(address: str, pooler: str = "") -> PostgresStore:
    """The store in this database, brought to the newest shape."""
    store = PostgresStore(address, *await asyncio.to_thread(opened_with, address, pooler))
    await store.begun()
    return store
