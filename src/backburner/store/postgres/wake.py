"""Telling other processes that the record has changed: LISTEN and NOTIFY.

Level-triggered: a notification says only "look". A connection that is lost is made again, and then
everyone looks, so nothing is missed; one that hangs is noticed because it is asked once in a while.
"""

import asyncio
import contextlib
from collections.abc import Callable

import psycopg

from backburner.store.postgres.connection import conninfo

CHANNEL = b"backburner"
NOTIFY = b"NOTIFY %s; " % CHANNEL
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
        while True:
            with contextlib.suppress(psycopg.Error, OSError, TimeoutError):
                await self._listen()
            await asyncio.sleep(_AGAIN_S)

    async def _listen(self) -> None:
        async with await psycopg.AsyncConnection.connect(
            conninfo(self._address), autocommit=True
        ) as connection:
            await connection.execute(b"LISTEN " + CHANNEL)
            self._listens.set()
            self._changed(0)
            while True:
                async for notice in connection.notifies(timeout=_ASK_EVERY_S):
                    self._changed(notice.pid)
                async with asyncio.timeout(_ANSWER_S):
                    await connection.execute(b"SELECT 1")
