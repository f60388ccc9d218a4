"""The HTTP API and the dashboard: `serve` runs them for an open Backburner.

They translate between requests and the public handles, and decide nothing. The name of a caller
comes from a token alone; what that caller may do is in `model.policy`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backburner.serve.server import serve as serve
    from backburner.serve.settings import Binding as Binding

__all__ = ["Binding", "serve"]


def __getattr__(name: str) -> Any:
    """Loaded when it is asked for: the libraries behind it are large."""
    if name == "serve":
        from backburner.serve.server import serve

        return serve
    if name == "Binding":
        from backburner.serve.settings import Binding

        return Binding
    raise AttributeError(name)
