"""Standard input and output, and streamable HTTP on this machine."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from backburner.mcp.access import TokenDoor, check_bound
from backburner.model.address import LOOPBACK
from backburner.model.errors import UsageError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from backburner.runtime.tokens import TokenService

_BODY_MAX_BYTES = 4 * 1024 * 1024
"""Of one request; what is longer is refused before it is read."""

_SESSIONS_MAX = 256
"""Of clients of earlier versions of the protocol, at once."""

_NAMES = (LOOPBACK, "localhost", "[::1]")
"""By which a request may call this machine; a page of elsewhere has made it call another."""

_LAST_S = 2
"""What open streams get at the end."""


async def over_stdio(server: "Server[Any]") -> None:
    """Until the client closes its side."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def over_http(
    server: "Server[Any]",
    listening: socket.socket,
    announce: Callable[[str], None],
    *,
    tokens: "TokenService | None" = None,
    until: Awaitable[None] | None = None,
) -> None:
    """Until somebody ends this process, or ``until`` is over. ``announce`` is told the address.

    Requests that name another host, or come from a page of one, are refused; with ``tokens``, also
    those that show none.
    """
    import uvicorn

    with listening:
        host, port = listening.getsockname()[:2]
        app = server.streamable_http_app(
            transport_security=_from_here(host),
            max_request_body_size=_BODY_MAX_BYTES,
            max_sessions=_SESSIONS_MAX,
        )
        serving = uvicorn.Server(
            uvicorn.Config(
                app if tokens is None else TokenDoor(app, tokens),
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=_LAST_S,
            )
        )
        announce(f"http://{_in_address(host)}:{port}/mcp")
        ending = None if until is None else asyncio.ensure_future(_end(serving, until))
        try:
            await serving.serve(sockets=[listening])
        finally:
            if ending is not None:
                ending.cancel()


def listen(port: int, host: str = LOOPBACK) -> socket.socket:
    """A port of this machine, 0 for any that is free. Whoever is told finds somebody there."""
    host = check_bound(host)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()
    except (OSError, OverflowError) as error:
        listening.close()
        raise UsageError(
            f"port {port} cannot be used: {error}", remedy="choose another, or 0 for any"
        ) from None
    return listening


def _from_here(host: str) -> TransportSecuritySettings:
    """The names of this machine, and the address that it listens on."""
    names = [f"{each}:*" for each in {*_NAMES, _in_address(host)}]
    return TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"http://{each}" for each in names]
    )


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


async def _end(serving: Any, until: Awaitable[None]) -> None:
    await until
    serving.should_exit = True
