"""What is said in a database (LISTEN and NOTIFY), heard by all of an event loop on one connection.

To tell one more listener costs whoever commits, and the kernel, as much as a small statement. So a
worker, which has the record open twice, and a worker of the engine for each, listens once.

A connection that is lost is made again, and everyone is told that something may have been missed;
one that hangs is noticed because it is asked once in a while.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg import Notify, sql

from backburner.store.postgres.connection import conninfo, settings

_ASK_EVERY_S = 10.0
_ANSWER_S = 5.0
"""With what the driver then takes to give up, a connection that hangs is noticed within half a
minute; to ask more often would be load on the database for each process that has it open."""
_AGAIN_S = 0.25
"""A database that restarts is away for a second or so."""

T = TypeVar("T")

Heard = Callable[[Notify | None], None]
"""Called with each notice; with None where some may have been missed: at the beginning, and when a
lost connection was made again."""
Lost = Callable[[Exception], None]
"""Called again and again for as long as there is no connection."""

_Connection = psycopg.AsyncConnection[tuple[object, ...]]


@contextlib.asynccontextmanager
async def listening(
    address: str, channels: Collection[str], heard: Heard, lost: Lost = lambda _: None
) -> AsyncGenerator[None]:
    """Hear what is said on these channels, until the end of the block."""
    ears = _ears.setdefault(asyncio.get_running_loop(), {})
    ear = ears.get(address)
    if ear is None or ear.is_dead:
        ear = ears[address] = _Ear(address)
    listener = _Listener(channels, heard, lost)
    ear.add(listener)
    try:
        yield
    finally:
        if ear.discard(listener):
            if ears.get(address) is ear:
                del ears[address]
            await ear.close()


@dataclass(eq=False, slots=True)
class _Listener:
    channels: Collection[str]
    heard: Heard
    lost: Lost
    has_begun: bool = False
    """It hears everything from now on."""

    def tell(self, notice: Notify | None) -> None:
        """Of a notice, or that some may have been missed."""
        _guarded(self.heard, notice)

    def cut_off(self, error: Exception) -> None:
        """It hears nothing until it has begun anew, and is told so."""
        self.has_begun = False
        _guarded(self.lost, error)


def _guarded(call: Callable[[T], None], value: T) -> None:
    """What goes wrong with one must not keep the others from hearing."""
    try:
        call(value)
    except Exception as error:  # noqa: BLE001 - it is said where all is that nobody waits for
        said = {"message": "a listener to the database has failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(said)


class _Ear:
    """Listens at one address for all who want to."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._listeners: set[_Listener] = set()
        self._bell = asyncio.Event()
        """There is one more who listens, or the connection is lost."""
        self._broken: Exception | None = None
        self._task = asyncio.create_task(self._keep_listening())

    @property
    def is_dead(self) -> bool:
        """Whether nothing will be heard any more: somebody has cancelled all that there was."""
        return self._task.done()

    def add(self, listener: _Listener) -> None:
        """One more."""
        self._listeners.add(listener)
        self._bell.set()

    def discard(self, listener: _Listener) -> bool:
        """One less. Whether it was the last."""
        self._listeners.discard(listener)
        return not self._listeners

    async def close(self) -> None:
        """Hang up."""
        # That nobody listens ends it too: the driver may say that it met a failure, and not that it
        # was told to stop.
        self._bell.set()
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _keep_listening(self) -> None:
        while self._listeners:
            try:
                async with await _Connection.connect(
                    conninfo(self._address), autocommit=True
                ) as connection:
                    async with asyncio.timeout(_ANSWER_S):
                        await connection.execute(settings(self._address))
                    await self._listen(connection)
            except Exception as error:  # noqa: BLE001 - nobody would hear anything any more
                for listener in [*self._listeners]:
                    listener.cut_off(error)
            await asyncio.sleep(_AGAIN_S)

    async def _listen(self, connection: _Connection) -> None:
        """Until it is lost."""
        connection.add_notify_handler(self._tell)  # of what comes with an answer
        self._broken = None
        hears: set[str] = set()
        while self._listeners:
            self._bell.clear()
            listeners = [*self._listeners]  # who comes from now on rings the bell
            wanted = {channel for each in listeners for channel in each.channels}
            async with asyncio.timeout(_ANSWER_S):
                await connection.execute(_change(hears, wanted))
            hears = wanted
            self._begin(listeners)
            await self._read_for_a_while(connection)
            if self._broken is not None:
                raise self._broken

    def _begin(self, listeners: Iterable[_Listener]) -> None:
        for listener in listeners:
            if not listener.has_begun and listener in self._listeners:
                listener.has_begun = True
                listener.tell(None)

    async def _read_for_a_while(self, connection: _Connection) -> None:
        """Not with `AsyncConnection.notifies`: while that waits nothing can be said here."""
        loop, fd = asyncio.get_running_loop(), connection.fileno()
        loop.add_reader(fd, self._read, connection, fd)
        try:
            async with asyncio.timeout(_ASK_EVERY_S):
                await self._bell.wait()
        except TimeoutError:
            pass
        finally:
            if self._broken is None:
                loop.remove_reader(fd)

    def _read(self, connection: _Connection, fd: int) -> None:
        line = connection.pgconn
        try:
            line.consume_input()
            while said := line.notifies():
                encoding = connection.info.encoding
                channel, payload = said.relname.decode(encoding), said.extra.decode(encoding)
                self._tell(Notify(channel, payload, said.be_pid))
        except Exception as error:  # noqa: BLE001 - it is raised where the connection is made again
            self._break(error, fd)
        else:
            if connection.broken:  # not every end of one is an error of reading
                self._break(psycopg.OperationalError("the connection was ended"), fd)

    def _break(self, error: Exception, fd: int) -> None:
        # Now: it is closed, and its number may be somebody else's in a moment.
        asyncio.get_running_loop().remove_reader(fd)
        self._broken = error
        self._bell.set()

    def _tell(self, notice: Notify) -> None:
        for listener in [*self._listeners]:
            if listener.has_begun and notice.channel in listener.channels:
                listener.tell(notice)


def _change(hears: set[str], wanted: set[str]) -> sql.Composed:
    """What makes a connection hear what is wanted: in one question, because a worker has as many

    channels as it has tools, and each that was asked for alone would take a round trip. It is asked
    also where nothing is to change, whether there is an answer.
    """
    listen, unlisten = sql.SQL("LISTEN {}"), sql.SQL("UNLISTEN {}")
    return sql.SQL("; ").join(
        [
            sql.SQL("SELECT 1"),
            *(listen.format(sql.Identifier(channel)) for channel in wanted - hears),
            *(unlisten.format(sql.Identifier(channel)) for channel in hears - wanted),
        ]
    )


_ears: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Ear]] = WeakKeyDictionary()
"""By address, of each event loop."""
