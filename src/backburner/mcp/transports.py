"""Standard input and output, and streamable HTTP on this machine."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mcp.server.stdio import stdio_server

from backburner.mcp.access import LOOPBACK, admitted, check_bound
from backburner.model.errors import NotAllowed, UsageError
from backburner.model.redaction import redact_text

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

_BODY_MAX_BYTES = 4 * 1024 * 1024
"""Of one request; what is longer is refused before it is read."""

_SESSIONS_MAX = 256
"""Of clients of earlier versions of the protocol, at once."""

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
    until: Awaitable[None] | None = None,
) -> None:
    """Until somebody ends this process, or ``until`` is over. ``announce`` is told the address.

    Requests that name another host, or come from a page of one, are refused.
    """
    import uvicorn

    with listening:
        app = server.streamable_http_app(
            host="localhost", max_request_body_size=_BODY_MAX_BYTES, max_sessions=_SESSIONS_MAX
        )
        serving = uvicorn.Server(
            uvicorn.Config(
                _admitting(app),
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=_LAST_S,
            )
        )
        host, port = listening.getsockname()[:2]
        announce(f"http://{f'[{host}]' if ':' in host else host}:{port}/mcp")
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


async def _end(serving: Any, until: Awaitable[None]) -> None:
    await until
    serving.should_exit = True


def _admitting(app: "ASGIApp") -> "ASGIApp":
    """The application, for those who may come in."""

    async def admitting(scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "http":
            try:
                admitted(_authorization(scope))
            except NotAllowed as error:
                await _refuse(send, redact_text(str(error)))
                return
        await app(scope, receive, send)

    return admitting


def _authorization(scope: "Scope") -> str | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            return value.decode("latin-1")
    return None


async def _refuse(send: "Send", why: str) -> None:
    problem = json.dumps({"title": "Unauthorized", "status": 401, "detail": why}).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(problem)).encode()),
        (b"www-authenticate", b"Bearer"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": problem})
