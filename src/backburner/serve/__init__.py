"""The HTTP API and the dashboard: `serve` runs them for an open Backburner.

They translate between requests and the public handles, and decide nothing. The name of a caller
comes from a token alone; what that caller may do is in `model.policy`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backburner.serve.server import Serving, serve, serving
    from backburner.serve.settings import Binding, Load

__all__ = ["Binding", "Load", "Serving", "serve", "serving"]

_SETTINGS = ("Binding", "Load")


def __getattr__(name: str) -> Any:
    """Loaded when it is asked for: the libraries behind it are large."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(
        import_module(f"backburner.serve.{'settings' if name in _SETTINGS else 'server'}"), name
    )
