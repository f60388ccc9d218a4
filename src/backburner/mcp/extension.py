"""The Tasks extension of 2026-07-28, `io.modelcontextprotocol/tasks`: its words and its gates.

It is declared by the client in each request. A request that does not declare it never gets a
task, and no request of an earlier version of the protocol does, whatever its client advertised.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

TASKS = "io.modelcontextprotocol/tasks"
PREFIX = "tasks/"
"""Of the names of its methods."""


def is_modern(context: "ServerRequestContext[Any, Any]") -> bool:
    """Whether extensions exist in the protocol version that was negotiated."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def declared(context: "ServerRequestContext[Any, Any]") -> bool:
    """Whether this very request may be answered with a task."""
    return is_modern(context) and TASKS in _mapping(_capabilities(context).get("extensions"))


def elicits(context: "ServerRequestContext[Any, Any]") -> bool:
    """Whether the client can show a form to its user."""
    return _capabilities(context).get("elicitation") is not None


def require(context: "ServerRequestContext[Any, Any]") -> None:
    """-32021 where this request does not declare the extension."""
    if not declared(context):
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"this needs the extension {TASKS}, which the request does not declare",
            {"requiredCapabilities": {"extensions": {TASKS: {}}}},
        )


def refuse_before_its_time(context: "ServerRequestContext[Any, Any]") -> None:
    """-32601: in earlier versions of the protocol these methods do not exist."""
    if context.method.startswith(PREFIX) and not is_modern(context):
        raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)


def check_header(context: "ServerRequestContext[Any, Any]", task_id: str) -> None:
    """-32020 where the header that requests are routed by names another task than the body."""
    headers = getattr(context.request, "headers", None)
    if headers is None:
        return  # not over HTTP
    if decode_header_value(headers.get(MCP_NAME_HEADER)) != task_id:
        raise MCPError(HEADER_MISMATCH, f"the header {MCP_NAME_HEADER} does not name the task")


def no_such_task() -> MCPError:
    """-32602: unknown, of somebody else, or forgotten. Which of them is nobody's business."""
    return MCPError(INVALID_PARAMS, "there is no such task (it may have been kept for long enough)")


def _capabilities(context: "ServerRequestContext[Any, Any]") -> Mapping[str, Any]:
    meta = _mapping(_mapping(context.params).get("_meta"))
    return _mapping(meta.get(CLIENT_CAPABILITIES_META_KEY))


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
