"""The options that every command has, and reading the values that options take."""

from collections.abc import Callable, Iterable
from typing import Annotated, TypeVar

import typer

from backburner.model.allowance import parse_size
from backburner.model.clock import parse_duration
from backburner.model.errors import UsageError
from backburner.model.signals import SignalKind, to_kinds

Value = TypeVar("Value")

HomeOption = Annotated[
    str | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help="The home folder, or postgresql://… for a record of many machines. "
        "[BACKBURNER_HOME; else the user's state folder]",
    ),
]
SessionOption = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="NAME",
        help="The session that owns the tasks. [BACKBURNER_SESSION; else default]",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON: one document, or a line each when following.")
]
TaskArgument = Annotated[str, typer.Argument(metavar="ID", hidden=True)]
TaskArguments = Annotated[list[str], typer.Argument(metavar="ID", hidden=True)]


def seconds(text: str, option: str) -> float:
    """A duration that was given to an option."""
    return _parsed(parse_duration, text, option)


def max_runtime(text: str) -> float | None:
    """What --max-runtime was given; None for no limit."""
    if text.strip().lower() == "none":
        return None
    return seconds(text, "--max-runtime") or None


def size(text: str, option: str) -> int:
    """A number of bytes that was given to an option."""
    return _parsed(parse_size, text, option)


def _parsed(parse: Callable[[str], Value], text: str, option: str) -> Value:
    try:
        return parse(text)
    except ValueError as error:
        message, _, remedy = str(error).partition("; ")
        raise UsageError(f"{option}: {message}", remedy=remedy) from None


def count(text: str, option: str, *, least: int = 0) -> int:
    """A number of things that was given to an option."""
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise UsageError(f"{option}: {text!r} is no number of {least} or more")
    return int(text)


def variables(given: list[str]) -> dict[str, str]:
    """What --env was given: NAME=VALUE, any number of times."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(
                f"--env: {text!r} is no NAME=VALUE", remedy="write for example --env CI=1"
            )
        found[name] = value
    return found


def signal_kinds(given: Iterable[str], option: str) -> frozenset[SignalKind]:
    """Kinds of signals that were given to an option."""
    try:
        return to_kinds(name.strip() for name in given)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", remedy=error.remedy) from None
