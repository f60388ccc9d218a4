"""Claims on a connection of the event loop's own: the next one need not go through the thread that
writes, which takes about as long as the database does.

They are those of `at_once`, one by one, for a node that has nothing else to write. What goes wrong
here is left to the writer, who can tell what became of it.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

import psycopg

from backburner.model.clock import Instant
from backburner.model.errors import BackburnerError
from backburner.model.events import EventKind
from backburner.store.news import News
from backburner.store.postgres.connection import conninfo, is_lost, settings
from backburner.store.postgres.migrations import newest
from backburner.store.postgres.notices import payloads
from backburner.store.postgres.queries import query
from backburner.store.postgres.silence import AsyncConnection
from backburner.store.postgres.statements import held
from backburner.store.postgres.texts import meant_value
from backburner.store.record.claims import Claim, Claimed, claimed_by
from backburner.store.record.leases import LeaseClock


class NotAnswered(Exception):
    """Nobody knows what became of it, where it is ``unsure``; else nothing was written."""

    def __init__(self, *, unsure: bool) -> None:
        super().__init__()
        self.unsure = unsure


class Claimer:
    """Claims for one node, one at a time."""

    def __init__(self, address: str, leases: LeaseClock) -> None:
        self._address = address
        self._leases = leases
        self._connection: AsyncConnection | None = None
        self._under_way: asyncio.Future[Claimed | None] | None = None
        """A connection that is being made, or a claim."""
        self._closed = False

    async def claim(self, claim: Claim) -> Claimed | None:
        """See `Store.claim`; NotAnswered where it is for the writer to do.

        Who stops waiting does not undo it.
        """
        if self._closed or (self._under_way is not None and not self._under_way.done()):
            raise NotAnswered(unsure=False)
        if self._connection is None:
            self._go(self._connect())  # for the next one
            raise NotAnswered(unsure=False)
        return await asyncio.shield(self._go(self._ask(self._connection, claim)))

    def _go(self, work: Coroutine[Any, Any, Claimed | None]) -> "asyncio.Future[Claimed | None]":
        under_way = asyncio.ensure_future(work)
        under_way.add_done_callback(heard)
        self._under_way = under_way
        return under_way

    async def _connect(self) -> None:
        with contextlib.suppress(psycopg.Error, BackburnerError):  # of which others tell
            connection = await AsyncConnection.connect(conninfo(self._address), autocommit=True)
            try:
                await connection.execute(settings(self._address))
            except BaseException:
                await connection.close()
                raise
            self._connection = connection

    async def _ask(self, connection: AsyncConnection, claim: Claim) -> Claimed | None:
        try:
            cursor = await connection.execute(
                query("claim_at_once").text,
                _values(claim, self._leases.time_of_day()),
                prepare=True,
            )
            rows = await cursor.fetchall()
        except psycopg.Error as error:
            lost = is_lost(error) or connection.closed
            if lost:
                self._connection = None
                await connection.close()
            raise NotAnswered(unsure=lost) from None
        except BaseException:  # this process leaves in the middle of it
            self._connection = None
            await connection.close()
            raise
        return claimed_by([tuple(map(meant_value, row)) for row in rows]).get(claim.task)

    async def close(self) -> None:
        """What is under way comes to its end."""
        self._closed = True
        if self._under_way is not None:
            await asyncio.wait([self._under_way])
        if self._connection is not None:
            await self._connection.close()


def _values(claim: Claim, now: Instant) -> dict[str, Any]:
    (notice,) = payloads(News(((claim.task, EventKind.STARTED),)))
    return held({"known": newest(), "notice": notice, "now": now, "wanted": [claim.row]})


def heard(done: "asyncio.Future[Any]") -> None:
    """Of its failure: whoever waited for it may be gone."""
    if not done.cancelled():
        done.exception()
