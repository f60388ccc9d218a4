"""Telling other processes that the record has changed: LISTEN and NOTIFY.

Level-triggered: a notification says only "look". A connection that is lost is made again, and then
everyone looks, so nothing is missed; one that hangs is noticed because it is asked once in a while.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import psycopg
from psycopg import Notify, sql

from backburner.store.postgres.connection import conninfo, settings

_CHANNEL = "backburner"
NOTIFY = f"NOTIFY {_CHANNEL}; ".encode()
_ASK_EVERY_S = 10.0
_ANSWER_S = 5.0
_AGAIN_S = 0.25


class Listener:
    """Calls ``changed`` after changes by any other process."""

    def __init__(self, address: str, changed: Callable[[int], None]) -> None:
        """``changed`` gets the process of the database that wrote; 0 where it is not known."""
        self._address = address
        self._changed = changed
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
        await listen(self._address, [_CHANNEL], self._heard)

    async def _heard(self, notice: Notify | None) -> None:
        if notice is None:
            self._listens.set()
        self._changed(0 if notice is None else notice.pid)


async def listen(
    address: str, channels: Sequence[str], heard: Callable[[Notify | None], Awaitable[None]]
) -> None:
    """Call ``heard`` with each notice, until cancelled; with None where some may have been missed:

    at the beginning, and when a lost connection was made again.
    """
    while True:
        with contextlib.suppress(psycopg.Error, OSError, TimeoutError):
            await _listen(address, channels, heard)
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
