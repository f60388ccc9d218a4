"""Keeping secrets out of records and logs: by the name of a key, never by guessing at values."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from backburner.model.errors import InvalidArguments

HIDDEN = "[redacted]"

_NAMES = (
    "api_key",
    "apikey",
    "authorization",
    "auth",
    "credentials",
    "password",
    "secret",
    "token",
)

VALUE_MAX_CHARS = 200
LINE_MAX_CHARS = 500


def is_secret(key: str) -> bool:
    """Whether the value under ``key`` must never be written: its name is, or ends in, one of ours.

    Case and the choice of `-`, `_` or neither make no difference.
    """
    plain = key.lower().replace("-", "_")
    squeezed = plain.replace("_", "")
    return any(plain.endswith(name) or squeezed.endswith(name.replace("_", "")) for name in _NAMES)


def redact(value: Any) -> Any:
    """A copy of ``value`` in which everything under a secret key is hidden, at any depth."""
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if isinstance(key, str) and is_secret(key) else redact(inner)
            for key, inner in value.items()  # pyright: ignore[reportUnknownVariableType]
        }
    if isinstance(value, list | tuple):
        return [redact(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def for_log(arguments: Mapping[str, Any]) -> str:
    """Arguments on one line for a log: redacted, each value and the line cut."""
    parts: list[str] = []
    for key, value in redact(arguments).items():
        text = str(value)
        if len(text) > VALUE_MAX_CHARS:
            text = text[: VALUE_MAX_CHARS - 1] + "…"
        parts.append(f"{key}={text}")
    line = " ".join(" ".join(parts).splitlines())  # every kind of line end, not \n alone
    return line if len(line) <= LINE_MAX_CHARS else line[: LINE_MAX_CHARS - 1] + "…"


# Possessive (++): a hostile text must not make them try every way to match.
_NAME_IN_TEXT = re.compile(r"(?<![\w-])([\w-]++)[\"']?\s*+[=:]\s*+")
_VALUE_IN_TEXT = re.compile(r"\"[^\"\n]*+\"?|'[^'\n]*+'?|(?i:bearer|basic)\s++\S++|[^\s&,;]++")
_PASSWORD_IN_ADDRESS = re.compile(r"(?<![\w+.-])([A-Za-z][\w+.-]*+://)[^\s/@]++@")


def redact_text(text: str) -> str:
    """What a program said, without `token=…`, `Authorization: …` and passwords in addresses."""
    text = _PASSWORD_IN_ADDRESS.sub(rf"\1{HIDDEN}@", text)
    kept: list[str] = []
    done = 0
    for name in _NAME_IN_TEXT.finditer(text):
        if name.start() < done or not is_secret(name[1]):
            continue
        if (value := _VALUE_IN_TEXT.match(text, name.end())) is not None:
            kept += [text[done : name.end()], HIDDEN]
            done = value.end()
    return "".join(kept) + text[done:]


def redact_arguments(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The arguments as the record keeps them, and whether anything of them is hidden.

    A call that was redacted cannot be made again from the record (D9).
    """
    if not arguments:
        return {}, False
    try:
        return redact(arguments), _has_secret(arguments)
    except RecursionError:
        raise InvalidArguments("the arguments are nested too deeply") from None


def _has_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(
            (isinstance(key, str) and is_secret(key)) or _has_secret(inner)
            for key, inner in value.items()  # pyright: ignore[reportUnknownVariableType]
        )
    if isinstance(value, list | tuple):
        return any(_has_secret(inner) for inner in value)  # pyright: ignore[reportUnknownVariableType]
    return False


_SHORTEST_SECRET = 4
"""A shorter text occurs by chance, and hiding it would spoil a message and keep no secret."""


def secrets_in(value: Any, *, below: bool = False) -> frozenset[str]:
    """Every text that stands under a secret key, to be kept out of messages about the call."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        text = str(value)
        return frozenset({text} if below and len(text) >= _SHORTEST_SECRET else ())
    found: set[str] = set()
    if isinstance(value, Mapping):
        for key, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
            secret = below or (isinstance(key, str) and is_secret(key))
            found |= secrets_in(inner, below=secret)
    elif isinstance(value, list | tuple):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            found |= secrets_in(inner, below=below)
    return frozenset(found)


def without(text: str, secrets: Collection[str]) -> str:
    """The text with every one of these hidden, the longest first: one may be part of another."""
    if not secrets:
        return text
    longest_first = sorted(secrets, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), HIDDEN, text)
