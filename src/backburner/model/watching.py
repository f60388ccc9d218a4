"""What a task is watched for while it runs (X4): readiness, a pattern in its output, silence.

Part of a task's specification, and only where something is asked for. Pure: patterns are compiled
where they are used (`work.log.pattern`).
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from backburner.model.clock import format_duration
from backburner.model.errors import UsageError
from backburner.model.task import Task
from backburner.model.values import value

LEAST_SILENCE_S = 1.0
"""Less is no silence: a program that thinks for a moment would be told of again and again."""

_TEXT_MAX_CHARS = 2000
"""Of a pattern, a path or an address."""
_PORTS = range(1, 65536)


class ReadyKind(StrEnum):
    """What makes a task ready."""

    OUTPUT = "output"
    """A line of its output matches a pattern."""
    PORT = "port"
    """It listens on a TCP port."""
    FILE = "file"
    """It has written a file."""
    HTTP = "http"
    """An address answers with a status of 2xx or 3xx."""


@value
class ReadyWhen:
    """The one condition on which a task is ready."""

    kind: ReadyKind
    value: str
    """The pattern, the port's number, the path or the address."""

    @property
    def port(self) -> int:
        """The number of the port."""
        return int(self.value)

    @property
    def described(self) -> str:
        """What has to be true, in a few words."""
        match self.kind:
            case ReadyKind.OUTPUT:
                return f"its output matches '{self.value}'"
            case ReadyKind.PORT:
                return f"it listens on port {self.value}"
            case ReadyKind.FILE:
                return f"it has written {self.value}"
            case ReadyKind.HTTP:
                return f"{self.value} answers"


@value
class Watching:
    """What to watch a task for; nothing unless told."""

    ready: ReadyWhen | None = None
    match: str | None = None
    """Tell of lines that match this pattern."""
    silence_s: float | None = None
    """Tell when nothing was written for so long."""

    def __bool__(self) -> bool:
        return self != NOTHING

    @classmethod
    def of(
        cls,
        *,
        ready_output: str | None = None,
        ready_port: int | None = None,
        ready_file: str | None = None,
        ready_http: str | None = None,
        match: str | None = None,
        silence: float | None = None,
    ) -> "Watching":
        """From what a caller gives; UsageError where it makes no sense."""
        given = {
            ReadyKind.OUTPUT: ready_output,
            ReadyKind.PORT: ready_port,
            ReadyKind.FILE: ready_file,
            ReadyKind.HTTP: ready_http,
        }
        conditions = [(kind, value) for kind, value in given.items() if value is not None]
        if len(conditions) > 1:
            names = " and ".join(kind.value for kind, _ in conditions)
            raise UsageError(
                f"a task becomes ready by one condition, not by {names}",
                remedy="keep one of them",
            )
        ready = _ready_when(*conditions[0]) if conditions else None
        if match is not None:
            _check_text(match, "the pattern to match")
        if silence is not None:
            _check_silence(silence)
        return cls(ready, match, silence)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Those that have to compile."""
        ready = self.ready.value if self.ready and self.ready.kind is ReadyKind.OUTPUT else None
        return tuple(pattern for pattern in (ready, self.match) if pattern is not None)

    def to_spec(self) -> dict[str, Any]:
        """As the record keeps it: a key `watch`, or nothing at all."""
        said: dict[str, Any] = {}
        if self.ready is not None:
            said["ready"] = {self.ready.kind.value: self.ready.value}
        if self.match is not None:
            said["match"] = self.match
        if self.silence_s is not None:
            said["silence_s"] = self.silence_s
        return {"watch": said} if said else {}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "Watching":
        """The inverse of `to_spec`, from a whole specification."""
        said: dict[str, Any] = spec.get("watch", {})
        ready: ReadyWhen | None = None
        condition: dict[str, str] = said.get("ready", {})
        for kind, what in condition.items():
            ready = ReadyWhen(ReadyKind(kind), what)
        return cls(ready, said.get("match"), said.get("silence_s"))

    def described(self) -> dict[str, str]:
        """What is told of, in a few words: `match` and `silence`."""
        said: dict[str, str] = {}
        if self.match is not None:
            said["match"] = f"told of lines that match '{self.match}'"
        if self.silence_s is not None:
            said["silence"] = f"told of {format_duration(self.silence_s)} without output"
        return said


NOTHING = Watching()


def ready_when(task: Task) -> ReadyWhen | None:
    """On what condition a task is ready; None where it has none."""
    return Watching.from_spec(task.spec).ready if "watch" in task.spec else None


def _ready_when(kind: ReadyKind, value: str | int) -> ReadyWhen:
    if kind is ReadyKind.PORT:
        _check_port(value)
    else:
        names = {
            ReadyKind.OUTPUT: "the pattern of readiness",
            ReadyKind.FILE: "the path of the ready file",
            ReadyKind.HTTP: "the address to ask",
        }
        _check_text(value, names[kind])
    if kind is ReadyKind.HTTP:
        _check_address(str(value))
    return ReadyWhen(kind, str(value))


def _check_text(text: object, what: str) -> None:
    if not isinstance(text, str) or not text or "\0" in text:
        raise UsageError(f"{what} has to be a text that is not empty")
    if len(text) > _TEXT_MAX_CHARS:
        raise UsageError(
            f"{what} is longer than {_TEXT_MAX_CHARS:,} characters", remedy="give a shorter one"
        )


def _check_port(port: object) -> None:
    if not isinstance(port, int) or isinstance(port, bool) or port not in _PORTS:
        raise UsageError(
            f"{port!r} is no port", remedy=f"give a number from {_PORTS[0]} to {_PORTS[-1]}"
        )


def _check_silence(seconds: object) -> None:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise UsageError(f"{seconds!r} is no number of seconds")
    if not math.isfinite(seconds) or seconds < LEAST_SILENCE_S:
        raise UsageError(
            f"a silence of {seconds:g} s cannot be told of",
            remedy=f"give {LEAST_SILENCE_S:g} s or more",
        )


def _check_address(address: str) -> None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    printable = address.isascii() and address.isprintable() and " " not in address
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or not printable:
        raise UsageError(
            f"{address!r} is no address to ask",
            remedy="write for example http://127.0.0.1:8080/health",
        )
    if "@" in parts.netloc:
        raise UsageError(
            "an address with a password in it would be kept in the record",
            remedy="leave the part before @ out",
        )
