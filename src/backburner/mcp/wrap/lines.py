"""Which line a request goes over: each client has a server of its own.

Over pipes there is one client. Over HTTP a client that shook hands is known by its connection; of
later ones each request stands for itself, so they are known by their session, and their server is
let go when nobody has asked for anything for a while.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from backburner.mcp import extension
from backburner.mcp.access import admission_of
from backburner.mcp.wrap.asked import connection_of
from backburner.mcp.wrap.line import Line
from backburner.model.errors import LimitReached

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from backburner.mcp.clients import Clients

_SERVERS_MAX = 64
"""At once; each may be a process."""

_IDLE_S = 600.0
_LOOK_EVERY_S = 30.0


class Lines:
    """All of them."""

    def __init__(
        self, clients: "Clients", opened: Callable[[], Line], *, most: int = _SERVERS_MAX
    ) -> None:
        """``most`` servers live at once."""
        self._most = most
        self._clients = clients
        self._opened = opened
        self._lines: dict[str, Line] = {}
        self._retiring: dict[asyncio.Task[None], Line] = {}
        self._resting: set[asyncio.Task[None]] = set()
        self._sweeping: asyncio.Task[None] | None = None

    async def of(self, context: "ServerRequestContext[Any, Any]") -> Line:
        """The line of whoever has sent this.

        It waits for nothing where notifications come in, so that they keep their order.
        """
        if context.request is None:
            return self._found("") or self._open("")
        owner = admission_of(context.request).owner
        if extension.is_modern(context):
            client = await self._clients.of(context)
            key = f"session {owner} {client.session.name}"
            if self._sweeping is None:
                self._sweeping = asyncio.create_task(self._sweep())
            return self._found(key) or self._open(key)
        connection = connection_of(context)
        key = f"connection {owner} {connection.session_id}"
        line = self._found(key)
        if line is None:
            line = self._open(key)
            connection.exit_stack.callback(self._retire, key)
        return line

    async def go_on(self) -> bool:
        """Whether something goes on in the background, now that all clients are gone."""
        for key in [*self._lines]:
            self._retire(key)
        # A copy: one that has nothing to wait for is over before the next is looked at.
        return any([await line.calls.go_on() for line in [*self._retiring.values()]])

    async def finished(self) -> None:
        """Wait for what goes on in the background."""
        if self._retiring:
            await asyncio.wait(self._retiring)

    async def close(self) -> None:
        """End every server, whatever goes on."""
        for work in (self._sweeping, *self._resting):
            if work is not None:
                work.cancel()
        for line in (*self._lines.values(), *self._retiring.values()):
            await line.close()
        self._lines.clear()
        for retiring in [*self._retiring]:
            retiring.cancel()

    def _found(self, key: str) -> Line | None:
        return self._lines.get(key)

    def _open(self, key: str) -> Line:
        busy = [line for line in self._lines.values() if not line.is_resting]
        if len(busy) >= self._most and not self._rest_one(busy):
            raise LimitReached(
                f"{self._most} clients are served, which is the limit",
                remedy="end one of them, or start another server",
            )
        line = self._lines[key] = self._opened()
        return line

    def _rest_one(self, busy: list[Line]) -> bool:
        """Make room: the one that nobody has used for longest starts a server when it needs it."""
        idle = [line for line in busy if line.is_idle]
        if idle:
            self._keep(asyncio.create_task(min(idle, key=lambda each: each.idle_since).rest()))
        return bool(idle)

    def _keep(self, work: "asyncio.Task[None]") -> None:
        self._resting.add(work)
        work.add_done_callback(self._resting.discard)

    def _retire(self, key: str) -> None:
        line = self._lines.pop(key, None)
        if line is not None:
            retiring = asyncio.create_task(line.retire())
            self._retiring[retiring] = line
            retiring.add_done_callback(lambda done: self._retiring.pop(done, None))

    async def _sweep(self) -> None:
        """Let go of what belongs to sessions, and nobody has used for a while."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            before = asyncio.get_running_loop().time() - _IDLE_S
            for key, line in [*self._lines.items()]:
                if key.startswith("session ") and line.is_idle and line.idle_since < before:
                    self._retire(key)
