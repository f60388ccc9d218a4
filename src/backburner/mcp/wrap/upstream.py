"""The connection to the wrapped server: made when it is needed, made again when the server died.

A new server knows nothing of the old one's conversation, so what the client has agreed on with
that one (initialize, level of logging, subscriptions) is said again first. A server that dies again
and again is started more and more seldom.
"""

import asyncio
import contextvars
import itertools
from collections.abc import Callable, Mapping
from typing import Any, cast

import anyio
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import (
    CallOptions,
    DispatchContext,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

from backburner.mcp.wrap.server import Server, headers_of
from backburner.model.errors import ToolError
from backburner.model.redaction import redact_text

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0
_LIVED_WELL_S = 60.0
"""A server that lived so long did not die of its start."""
_HANDSHAKE_S = 60.0
_WHY_S = 0.1
_SESSION_GONE = "Session terminated"
"""What a client over HTTP is told when the server does not know its session any more."""

Connection = JSONRPCDispatcher[TransportContext]
Params = Mapping[str, Any]


class ServerGone(ToolError):
    """The wrapped server died, or cannot be started; the text says which."""


class Upstream:
    """The wrapped server, whether it lives at the moment or not."""

    def __init__(
        self, server: Server, on_request: OnRequest, on_notification: OnNotifyIntercept
    ) -> None:
        self.server = server
        self._on_request = on_request
        self._on_notification = on_notification
        self.headers_of_call: Callable[[Any, Any], dict[str, str]] = lambda _, __: {}
        """What a tool wants in the head of a request, of its name and arguments."""
        self._connection: Connection | None = None
        self._attempt: asyncio.Task[Connection] | None = None
        self._living: set[asyncio.Task[None]] = set()
        self._leaving = asyncio.Event()
        self._said: dict[str, tuple[str, Params]] = {}
        """What a new server has to be told first: a method and its parameters, by what it is."""
        self._version: str | None = None
        self._deaths = 0
        self._not_before = 0.0
        self._why: str | None = None
        self._numbers = itertools.count(1)

    @property
    def lives(self) -> bool:
        """Whether there is a server, or one is being started."""
        return bool(self._living) or self._attempt is not None

    # Talking

    def number(self) -> str:
        """A name for a request. Never a client's own: two of them may count alike."""
        return f"backburner-{next(self._numbers)}"

    async def request(
        self,
        method: str,
        params: Params | None,
        *,
        id: str | None = None,
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """Ask the server. MCPError as it answers it; ServerGone."""
        connection = await self._connected()
        try:
            answer = await self._ask(connection, method, params, id=id, on_progress=on_progress)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED and error.message == "Connection closed":
                await self._end()
                raise ServerGone(self._died()) from None
            if error.code == INVALID_REQUEST and error.message == _SESSION_GONE:
                self._lose(connection)
                raise ServerGone(self._died()) from None
            raise
        if method == "initialize" and isinstance(said := answer.get("protocolVersion"), str):
            self._version = said
        return answer

    async def notify(self, method: str, params: Params | None) -> None:
        """Tell the server something; nothing where it does not live."""
        connection = self._connection
        if connection is not None:
            headers = headers_of(method, params or {}, self._version)
            await connection.notify(method, params, {"headers": headers})

    def remember(self, what: str, method: str, params: Params | None) -> None:
        """Tell this to a new server too."""
        self._said[what] = (method, params or {})

    def forget(self, what: str) -> None:
        """Do not tell it to a new server any more."""
        self._said.pop(what, None)

    async def close(self) -> None:
        """End the server, or let go of it."""
        self._leaving.set()
        await self.over()

    async def rest(self) -> None:
        """End the server for now: the next request starts it again."""
        self._leaving.set()
        await self.over()
        self._leaving = asyncio.Event()

    async def over(self) -> None:
        """Wait until every server that was started has ended."""
        if self._living:
            await asyncio.wait(self._living)

    async def _ask(
        self,
        connection: Connection,
        method: str,
        params: Params | None,
        *,
        id: str | None = None,
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        version = None if method == "initialize" else self._version
        headers = headers_of(method, params or {}, version)
        if method == "tools/call" and params is not None:
            headers |= self.headers_of_call(params.get("name"), params.get("arguments"))
        options: CallOptions = {"headers": headers, "request_id": id or self.number()}
        if on_progress is not None:
            options["on_progress"] = on_progress
        if method in ("initialize", "server/discover"):
            options["cancel_on_abandon"] = False
        return await connection.send_raw_request(method, params, options)

    # Living and dying

    async def _connected(self) -> Connection:
        if self._connection is not None:
            return self._connection
        if self._attempt is None:
            # Of nobody's call: one that is cancelled must not take the start along with it.
            self._attempt = asyncio.get_running_loop().create_task(
                self._connect(), context=contextvars.Context()
            )
            self._attempt.add_done_callback(self._attempted)
        return await asyncio.shield(self._attempt)

    def _attempted(self, attempt: "asyncio.Task[Connection]") -> None:
        self._attempt = None
        if not attempt.cancelled():
            attempt.exception()  # whoever waited has it

    async def _connect(self) -> Connection:
        if self._leaving.is_set():
            raise ServerGone(f"{self.server}, the wrapped server, is let go")
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._not_before - loop.time()))
        ready: asyncio.Future[Connection] = loop.create_future()
        living = asyncio.create_task(self._live(ready))
        self._living.add(living)
        living.add_done_callback(self._living.discard)
        try:
            connection = await ready
            await self._introduce(connection)
        except (MCPError, OSError, ValueError, TimeoutError) as error:
            why = redact_text(str(error) or type(error).__name__)
            raise ServerGone(f"{self.server}, the wrapped server, does not start: {why}") from None
        if not living.done():
            self._connection = connection
        return connection

    async def _introduce(self, connection: Connection) -> None:
        """Say again what the client has said to the server before."""
        if "initialize" not in self._said:
            return
        async with asyncio.timeout(_HANDSHAKE_S):
            for method, params in [*self._said.values()]:
                if method.startswith("notifications/"):
                    headers = headers_of(method, params, self._version)
                    await connection.notify(method, params or None, {"headers": headers})
                else:
                    await self._ask(connection, method, params)

    async def _live(self, ready: "asyncio.Future[Connection]") -> None:
        """From the start of a server to its end."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._why = None
        try:
            async with self.server.opened() as (read, write):
                await self._converse(JSONRPCDispatcher(read, write), ready)
        except Exception as error:  # noqa: BLE001 - of a transport: whatever it is, it is over
            self._why = _told(error)
            self._connection = None
        if not ready.done():
            ready.set_exception(OSError(self._why or "it ended at once"))
        self._deaths = 0 if loop.time() - began >= _LIVED_WELL_S else self._deaths + 1
        wait = _FIRST_WAIT_S * 2 ** min(self._deaths - 2, 10) if self._deaths > 1 else 0.0
        self._not_before = loop.time() + min(wait, _LONGEST_WAIT_S)

    async def _converse(self, connection: Connection, ready: "asyncio.Future[Connection]") -> None:
        async def talk(*, task_status: TaskStatus[None]) -> None:
            await connection.run(
                self._on_request, _nothing, self._on_notification, task_status=task_status
            )
            self._lose(connection)  # before the server is waited for, which may take a while
            group.cancel_scope.cancel()

        async def leave() -> None:
            await self._leaving.wait()
            group.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(leave)
                await group.start(talk)
                ready.set_result(connection)
        finally:
            self._lose(connection)

    def _lose(self, connection: Connection) -> None:
        if self._connection is connection:
            self._connection = None

    async def _end(self) -> None:
        """Its own task knows why; a process may take its time to leave."""
        if self._living:
            await asyncio.wait(self._living, timeout=_WHY_S)

    def _died(self) -> str:
        why = f" ({self._why})" if self._why else ""
        return (
            f"{self.server}, the wrapped server, ended while this ran{why}; whether it had an"
            " effect is not known. The next call starts it again"
        )


async def _nothing(_: DispatchContext[TransportContext], __: str, ___: Params | None) -> None:
    """Every notification is taken in the order in which it comes, before this."""


def _told(error: BaseException) -> str:
    """The first of what a group of tasks has raised, in a line."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return redact_text(f"{type(error).__name__}: {error}".rstrip(": "))
