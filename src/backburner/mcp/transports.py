"""Standard input and output, and streamable HTTP on this machine."""

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.server.stdio import stdio_server

from backburner.model.errors import UsageError

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_HOST = "127.0.0.1"
"""Nobody else: there are no tokens, and whoever reaches the server can run commands."""

_LAST_S = 2
"""What open streams get at the end."""


async def over_stdio(server: "Server[Any]") -> None:
    """Until the client closes its side."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def over_http(server: "Server[Any]", port: int, announce: Callable[[str], None]) -> None:
    """Until somebody ends this process. Port 0 is any that is free: ``announce`` is told which."""
    import uvicorn

    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_HOST, port))
            listening.listen()  # whoever is told the address finds somebody there
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"port {port} cannot be used: {error}", remedy="choose another, or 0 for any"
            ) from None
        announce(f"http://{_HOST}:{listening.getsockname()[1]}/mcp")
        config = uvicorn.Config(
            server.streamable_http_app(host=_HOST),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_LAST_S,
        )
        await uvicorn.Server(config).serve(sockets=[listening])
