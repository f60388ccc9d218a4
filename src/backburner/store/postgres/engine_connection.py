"""How Procrastinate's worker reaches the database: through one that restarts, and cheaply.

Its own connector gives up at the first failure. The part of its worker that was asking then ends,
silently: one that says no more that it lives would be taken for dead with all that it runs. So
here every question is asked until there is an answer, and a connection that stays silent is lost.

A question that is asked again may have been answered before. A job that was fetched by an answer
that nobody heard is found by `jobs_silent`; to say twice that one lives changes nothing, and so
here does ending a job twice.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import procrastinate
import psycopg
from procrastinate.connector import Notify
from procrastinate.exceptions import ConnectorException
from psycopg_pool import AsyncConnectionPool, PoolClosed

from backburner.store.postgres.connection import ReadOnly, conninfo, is_lost, settings
from backburner.store.postgres.footprint import ENGINE
from backburner.store.postgres.listening import listening
from backburner.store.postgres.silence import AsyncConnection

Answer = TypeVar("Answer")

_AGAIN_S = 0.25
_CONNECTS_S = 1.0
"""The pool gives up on a database that is away until it is asked again, so who waits for a
connection asks often. One that takes longer to be made is there for the next question."""
_LOOK = '{"type":"job_inserted","job_id":0}'
"""What Procrastinate's worker takes for news."""


class EngineConnection(procrastinate.PsycopgConnector):
    """See `procrastinate.connector.BaseAsyncConnector`."""

    def __init__(self, address: str, report: Callable[[str], None]) -> None:
        self._address = address
        self._report = report
        self._tell: Notify | None = None
        self._waits = False
        self._refused: set[object] = set()
        """Questions that wait for a database that is there and cannot be written."""
        self.heard = 0
        """So many notices have come."""
        self.lost = 0
        """So many questions were asked again: their first answers may have come to nobody."""
        self.gives_up = False
        """Whether its worker leaves, at once, and does not wait for a database that is away. What
        is not said then the others find out, as of one that has died."""
        ours = settings(address, synchronous_commit="off")

        async def configure(connection: psycopg.AsyncConnection[Any]) -> None:
            await connection.execute(ours)

        async def reset(connection: psycopg.AsyncConnection[Any]) -> None:
            if self._refused:  # it would stay so: the next one may lead elsewhere
                await connection.close()

        super().__init__(  # pyright: ignore[reportUnknownMemberType] - half of its types
            pool_factory=_pool,
            connection_class=AsyncConnection,
            # What it says of its jobs is never read as the state of a task, and what a crash
            # takes with it is said anew: it need not be on disk before the worker goes on.
            configure=configure,
            reset=reset,
            conninfo=conninfo(address),
            kwargs={"autocommit": True},
            min_size=1,
            max_size=ENGINE,
            timeout=_CONNECTS_S,
            reconnect_timeout=_CONNECTS_S,
        )

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        """See BaseConnector."""
        try:
            await self._patiently(super().execute_query_async, query, arguments)
        except ConnectorException as error:
            if not (self.gives_up or isinstance(error.__cause__, psycopg.errors.RaiseException)):
                raise
            # The job is over: others took this worker for dead, or the first answer was lost.

    async def execute_query_one_async(self, query: Any, **arguments: Any) -> dict[str, Any]:
        """See BaseConnector."""
        return await self._patiently(super().execute_query_one_async, query, arguments)

    async def execute_query_all_async(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
        """See BaseConnector."""
        return await self._patiently(super().execute_query_all_async, query, arguments)

    async def _patiently(
        self, ask: Callable[..., Awaitable[Answer]], query: str, arguments: dict[str, Any]
    ) -> Answer:
        question = object()
        try:
            while True:
                try:
                    answer = await ask(query, **arguments)
                except ConnectorException as error:
                    cause = error.__cause__
                    if cause is None or isinstance(cause, PoolClosed) or not is_lost(cause):
                        raise  # PoolClosed: this worker has left
                    if self.gives_up:
                        raise
                    self.lost += 1
                    self._waits_for(question, cause)
                else:
                    self._is_answered(question)
                    return answer
                await asyncio.sleep(_AGAIN_S)
        finally:
            self._refused.discard(question)

    def _waits_for(self, question: object, cause: BaseException) -> None:
        """Said once, for whatever of it is asked meanwhile; and once more where the database is

        there and not to be written: that need not pass by itself.
        """
        first = not self._waits
        if isinstance(cause, ReadOnly):
            first |= not self._refused
            self._refused.add(question)
        if first:
            self._waits = True
            self._report(f"the engine waits for the database: {_first_line(cause)}")

    def _is_answered(self, question: object) -> None:
        """What writes nothing is answered all the while."""
        self._refused.discard(question)
        if self._waits and not self._refused:
            self._waits = False
            self._report("the engine has the database again")

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """See BaseConnector."""
        self._tell = on_notification

        notices: asyncio.Queue[psycopg.Notify | None] = asyncio.Queue()

        def heard(notice: psycopg.Notify | None) -> None:
            self.heard += 1
            notices.put_nowait(notice)

        async with listening(self._address, list(channels), heard):
            while True:
                notice = await notices.get()
                if notice is None:
                    await self.look()
                else:
                    await on_notification(channel=notice.channel, payload=notice.payload)

    async def look(self) -> None:
        """There may be a job, of which no notice tells."""
        if self._tell is not None:
            with contextlib.suppress(ConnectorException):
                await self._tell(channel="", payload=_LOOK)


def _first_line(error: BaseException) -> str:
    """What libpq says after it are guesses."""
    return str(error).partition("\n")[0] or type(error).__name__


class _Pool(AsyncConnectionPool[Any]):
    """One that is open at once, also while the database is away: each question waits for itself.

    To wait here would be to wait for half a minute, because the pool does not try again by itself.
    """

    async def open(self, wait: bool = False, timeout: float = 0.0) -> None:  # noqa: ARG002 - as above
        await super().open()


def _pool(**options: Any) -> _Pool:
    """Without a question before each question, whether the connection is there."""
    del options["check"]
    return _Pool(**options)
