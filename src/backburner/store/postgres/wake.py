"""Telling other processes that the record has changed: LISTEN and NOTIFY.

A notification says what has changed (`notices`), so that only those look whom it concerns. When
something may have been missed (`listening`) everyone looks. Whether the database can be reached is
known here first.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg import Notify

from backburner.store.news import News
from backburner.store.postgres.connection import explain
from backburner.store.postgres.listening import listening
from backburner.store.postgres.notices import payloads, told_by

_CHANNEL = "backburner"
_OUTAGE_S = 3.0
"""A database that is back by then has only restarted, which is nobody's concern."""

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
        self.breaks = 0
        """It grows with each connection that is made or lost."""
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
        async with listening(self._address, [_CHANNEL], self._heard, self._lost):
            await asyncio.Event().wait()

    def _heard(self, notice: Notify | None) -> None:
        if notice is None:
            self.breaks += 1
            self._listens.set()
            self._lost_at = None
            self._changed(0, None)
            if self._told:  # at last: who shows it may fail
                self._told = False
                self._outage(None)
        else:
            self._changed(notice.pid, told_by(notice.payload))

    def _lost(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        if self._lost_at is None:
            self._lost_at = now
            self.breaks += 1
        if not self._told and now - self._lost_at > _OUTAGE_S:
            self._told = True
            known = isinstance(error, psycopg.Error)
            self._outage(explain(error).message if known else "the database does not answer")
