"""A request of a client that waits for its answer, with the way back to that client."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.exceptions import NoBackChannelError
from mcp_types import LOG_LEVEL_META_KEY, RequestId

from backburner.mcp import extension
from backburner.mcp.wrap.meta import PROGRESS, Json, meta_of

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext
    from mcp.shared.dispatcher import CallOptions, DispatchContext, ProgressFnT
    from mcp.shared.transport_context import TransportContext


@dataclass(slots=True, eq=False)
class Asked:
    """One request. Whatever is told along the way comes before its answer."""

    context: "ServerRequestContext[Any, Any]"
    tasks: list[str] = field(default_factory=list[str])
    """Of ours that it listens to; the rest of its subscription is the server's."""
    acknowledged: anyio.Event = field(default_factory=anyio.Event)

    @property
    def method(self) -> str:
        """What is asked."""
        return self.context.method

    @property
    def id(self) -> RequestId | None:
        """As the client calls it."""
        return self.context.request_id

    @property
    def params(self) -> Json:
        """A copy of what came with it."""
        return {**(self.context.params or {})}

    @property
    def is_modern(self) -> bool:
        """Whether extensions exist in its version of the protocol."""
        return extension.is_modern(self.context)

    @property
    def wants_progress(self) -> bool:
        """Whether its client wants to hear how far it is."""
        return PROGRESS in meta_of(self.context.params)

    @property
    def takes_logs(self) -> bool:
        """Whether log messages may be sent on its way back: later protocols ask to be asked."""
        return not self.is_modern or LOG_LEVEL_META_KEY in meta_of(self.context.params)

    @property
    def back(self) -> "DispatchContext[TransportContext]":
        """The way back that belongs to this request alone."""
        # The package types whatever goes through its session; here everything passes untyped.
        return self.context.session._request_outbound  # pyright: ignore[reportPrivateUsage]

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell how far it is; nothing once it is answered."""
        await self.back.progress(progress, total, message)

    @property
    def report(self) -> "ProgressFnT | None":
        """Who is told how far it is."""
        return self.progress if self.wants_progress else None


def connection_of(context: "ServerRequestContext[Any, Any]") -> "Connection":
    """The connection of a client, which outlives its requests where it shook hands."""
    return context.session._connection  # pyright: ignore[reportPrivateUsage]


async def ask_back(
    asked: "Asked | None",
    connection: "Connection | None",
    method: str,
    params: Any,
    options: "CallOptions",
) -> Json:
    """A request of the server to its client, along with one that waits, or by itself."""
    if asked is not None and asked.back.can_send_request:
        return await asked.back.send_raw_request(method, params, options)
    if connection is None:
        raise NoBackChannelError(method)
    return await connection.send_raw_request(method, params, options)
