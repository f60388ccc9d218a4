"""The server that all of it is registered with, and how long its tools may take."""

import asyncio
import warnings
from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPDeprecationWarning

warnings.simplefilter("ignore", MCPDeprecationWarning)  # it serves the earlier versions too

Ctx = Context[Any, Any]
TASKS = "io.modelcontextprotocol/tasks"

_HINT = CacheHint(60_000, "private")
server = MCPServer(
    "everything",
    version="1",
    log_level="ERROR",
    cache_hints={
        "tools/list": _HINT,
        "prompts/list": _HINT,
        "resources/list": _HINT,
        "resources/templates/list": _HINT,
        "resources/read": _HINT,
        "server/discover": _HINT,
    },
)


async def take(seconds: float) -> None:
    """It is to take this long."""
    await asyncio.sleep(seconds)  # noqa: TID251 - a server that takes its time
