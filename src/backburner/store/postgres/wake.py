"""Telling other processes that the record has changed: LISTEN and NOTIFY.

A notification says what has changed (`notices`), so that only those look whom it concerns. A
connection that is lost is made again, and then everyone looks, so nothing is missed; one that hangs
is noticed because it is asked once in a while. So whether the database can be reached is known here
first.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import Notify, sql

from backburner.store.news import News
from backburner.store.postgres.connection import conninfo, explain, settings
from backburner.store.postgres.notices import payloads, told_by

_CHANNEL = "backburner"
_ASK_EVERY_S = 10.0
_ANSWER_S = 5.0
_AGAIN_S = 0.25
_OUTAGE_S = 3.0
"""A database that is back by then has only restarted, which is nobody's concern."""

Lost = Callable[[Exception], None]


_NOTIFY = b"SELECT pg_notify('%s', %%(payload)s)" % _CHANNEL.encode()
# Not NOTIFY, of which each would be a statement of its own to those who count them.


def notices(news: News | None) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The statements that tell of it, once they are committed."""
    for payload in payloads(news):
        yield _NOTIFY, {"payload": payload}


class Listener:
    """Calls ``changed`` after changes by any other process."""

    def __init__(
        self,
        address: str,
        changed: Callable[[int, News | None], None],
        outage: Callable[[str | None], None],
    ) -> None:
        """``changed`` gets the process of the database that wrote, and what; 0 and None where some

        may have been missed. ``outage`` is told why the database cannot be reached, and None when
        it can be again.
        """
        self._address = address
        self._changed = changed
        self._outage = outage
        self.times = 0
        """How often it has begun to listen: once more for each connection that was lost."""
        self._lost_at: float | None = None
        self._told = False
        self._listens = asyncio.Event()
        self._task = asyncio.create_task(self._keep_listening())

    async def begun(self) -> None:
        """Wait until nothing can be missed."""
        await self._listens.wait()

    async def close(self) -> None:
        """Stop listening."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _keep_listening(self) -> None:
        await listen(self._address, [_CHANNEL], self._heard, self._lost)

    async def _heard(self, notice: Notify | None) -> None:
        if notice is None:
            self.times += 1
            self._listens.set()
            self._lost_at = None
            if self._told:
                self._told = False
                self._outage(None)
            self._changed(0, None)
        else:
            self._changed(notice.pid, told_by(notice.payload))

    def _lost(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        if self._lost_at is None:
            self._lost_at = now
        if not self._told and now - self._lost_at > _OUTAGE_S:
            self._told = True
            known = isinstance(error, psycopg.Error)
            self._outage(explain(error).message if known else "the database does not answer")


async def listen(
    address: str,
    channels: Sequence[str],
    heard: Callable[[Notify | None], Awaitable[None]],
    lost: Lost = lambda _: None,
) -> None:
    """Call ``heard`` with each notice, until cancelled; with None where some may have been missed:

    at the beginning, and when a lost connection was made again. Until that is, ``lost`` is called
    again and again.
    """
    while True:
        try:
            await _listen(address, channels, heard)
        except (psycopg.Error, OSError, TimeoutError) as error:
            lost(error)
        await asyncio.sleep(_AGAIN_S)


async def _listen(
    address: str, channels: Sequence[str], heard: Callable[[Notify | None], Awaitable[None]]
) -> None:
    async with await psycopg.AsyncConnection.connect(
        conninfo(address), autocommit=True
    ) as connection:
        await connection.execute(settings(address))
        for channel in channels:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        await heard(None)
        while True:
            async for notice in connection.notifies(timeout=_ASK_EVERY_S):
                await heard(notice)
            async with asyncio.timeout(_ANSWER_S):
                await connection.execute(b"SELECT 1")
