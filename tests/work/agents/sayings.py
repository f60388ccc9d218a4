"""A context that remembers what was said through it."""

from collections.abc import Mapping
from typing import Any

from backburner.work.tools.context import Context, Stream


class Heard:
    """A `Sink` for tests without a record."""

    def __init__(self) -> None:
        self.statuses: list[str] = []
        self.outputs: list[tuple[Stream, str]] = []

    def status(self, text: str) -> None:
        self.statuses.append(text)

    def output(self, stream: Stream, text: str) -> None:
        self.outputs.append((stream, text))

    def progress(
        self, current: float, total: float | None, unit: str | None, label: str | None
    ) -> None:
        raise NotImplementedError

    async def ask(
        self, question: str, schema: Mapping[str, Any] | None, timeout: float | None
    ) -> Any:
        raise NotImplementedError

    async def receive(self, timeout: float | None) -> str:
        raise NotImplementedError

    async def tell(self, text: str) -> None:
        raise NotImplementedError

    def said(self, stream: Stream) -> str:
        """All of one stream."""
        return "".join(text for where, text in self.outputs if where == stream)


def heard(folder: str | None = None) -> tuple[Heard, Context]:
    """A sink, and a context that goes there."""
    sink = Heard()
    return sink, Context(sink, folder=folder)
