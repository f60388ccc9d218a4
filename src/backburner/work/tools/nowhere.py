"""The context of a call that nobody follows: what it says is not kept, and nobody answers it."""

# ruff: noqa: ARG002 - the arguments are those of `Sink`

from collections.abc import Mapping
from functools import cache
from typing import Any

from backburner.model.errors import ToolError
from backburner.work.tools.context import Context, Stream


class Nowhere:
    """A `Sink` without anybody behind it."""

    def status(self, text: str) -> None:
        """Nobody looks."""

    def output(self, stream: Stream, text: str) -> None:
        """There is no log."""

    def progress(
        self, current: float, total: float | None, unit: str | None, label: str | None
    ) -> None:
        """Nobody looks."""

    async def ask(
        self, question: str, schema: Mapping[str, Any] | None, timeout: float | None
    ) -> Any:
        """ToolError: waiting would take for ever."""
        raise ToolError("there is nobody to ask", remedy="call the tool in a session")

    async def receive(self, timeout: float | None) -> str:
        """ToolError: waiting would take for ever."""
        raise ToolError("there is nobody to hear from", remedy="call the tool in a session")

    async def tell(self, text: str) -> None:
        """There is no session."""


@cache
def nowhere() -> Context:
    """One is enough: it holds nothing."""
    return Context(Nowhere())
