"""The tools of a session for a model, without `await`."""

from typing import Any

from backburner.sync.portal import Portal
from backburner.tools.seen import Answer, Form
from backburner.tools.toolset import Toolset as AsyncToolset


class Toolset:
    """See `backburner.tools.toolset.Toolset`."""

    def __init__(self, portal: Portal, inner: AsyncToolset) -> None:
        self._portal = portal
        self._inner = inner

    @property
    def names(self) -> list[str]:
        """Of its tools."""
        return self._inner.names

    def schemas(self, form: Form = "openai") -> list[dict[str, Any]]:
        """Every tool as the interface of a model takes it: "openai", "anthropic" or "mcp"."""
        return self._inner.schemas(form)

    def call(self, name: str, arguments: Any = None) -> Answer:
        """Call a tool. Whatever goes wrong is an answer too, in words for the model."""
        return self._portal.call(self._inner.call(name, arguments))

    def close(self) -> None:
        """The client is gone: what it was shown and did not come back for goes to the next."""
        self._portal.call(self._inner.close())
