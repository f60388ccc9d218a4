"""Background work over MCP: a server of our tools and of the Tasks extension.

Nothing here is loaded before it is asked for: hooks only want the name of a session.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backburner.mcp.naming import session_name as session_name
    from backburner.mcp.results import protocol_error as protocol_error
    from backburner.mcp.server import serve as serve

_PLACES = {"protocol_error": "results", "serve": "server", "session_name": "naming"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
