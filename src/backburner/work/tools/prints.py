"""What a tool prints belongs to its own log (C4), though all of them share one standard output.

Each call runs in a context of its own (`contextvars`), which its tasks and `asyncio.to_thread`
inherit; what is printed within one goes to that call, and everything else where it always went. So
does what a thread prints that a tool has started by itself: such threads inherit nothing.
"""

import contextlib
import contextvars
import io
import sys
from collections.abc import Callable, Generator
from typing import TextIO, cast

Write = Callable[[str, str], object]
"""Takes a stream and a piece of text."""

_writes: contextvars.ContextVar[Write | None] = contextvars.ContextVar("prints", default=None)
_capturing = 0


class _Split(io.TextIOBase):
    """Stands before a standard stream."""

    def __init__(self, name: str, beneath: TextIO) -> None:
        self._name = name
        self.beneath = beneath

    def write(self, text: str, /) -> int:
        write = _writes.get()
        if write is None:
            return self.beneath.write(text)
        write(self._name, text)
        return len(text)

    def flush(self) -> None:
        if _writes.get() is None:
            self.beneath.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return _writes.get() is None and self.beneath.isatty()

    def fileno(self) -> int:
        return self.beneath.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base has an attribute
        return self.beneath.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.beneath.errors

    @property
    def buffer(self) -> object:
        """Bytes that are written below us go where they always went."""
        return self.beneath.buffer


def captured(write: Write) -> None:
    """From now on what this context prints is ``write``'s."""
    _writes.set(write)


@contextlib.contextmanager
def aside() -> Generator[None]:
    """What is printed meanwhile is not the call's: a log of ours that ends up on standard error."""
    token = _writes.set(None)
    try:
        yield
    finally:
        _writes.reset(token)


def begin() -> None:
    """A call begins whose prints are captured; `end` has to follow."""
    global _capturing  # noqa: PLW0603 - the standard streams are global
    _capturing += 1
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _Split):
            setattr(sys, name, cast("TextIO", _Split(name, stream)))


def end() -> None:
    """A call has ended. After the last one the streams are what they were."""
    global _capturing  # noqa: PLW0603
    _capturing -= 1
    if _capturing == 0:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if isinstance(stream, _Split):
                setattr(sys, name, stream.beneath)
