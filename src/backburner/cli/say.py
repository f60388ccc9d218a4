"""Saying things: data on standard output, messages on standard error, nothing anywhere else.

A message that cannot be written is lost, and nothing more: work goes on when its reader has left.
"""

import contextlib
import json
import sys
from collections.abc import Iterable
from typing import Any

from backburner.cli.textwidth import clean


def data(text: str) -> None:
    """A line of what was asked for."""
    print(text)


def at_once(text: str) -> None:
    """Text as it is, seen at once by whoever reads it."""
    sys.stdout.write(text)
    sys.stdout.flush()


def error_output(text: str) -> None:
    """What a task wrote to its standard error, to ours; after what it wrote before."""
    sys.stdout.flush()
    sys.stderr.write(text)
    sys.stderr.flush()


def message(text: str) -> None:
    """A sentence about it, with our name before it, for the person who asked."""
    sys.stdout.flush()  # both often end in one terminal: keep the order
    _tell(f"backburner: {clean(text)}")


def hint(text: str) -> None:
    """What the person can do about the message before."""
    _tell(f"hint: {clean(text)}")


def _tell(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def document(value: Any) -> None:
    """One JSON document."""
    print(_json(value, indent=2))


def json_line(value: Any) -> None:
    """One line of JSON, seen at once."""
    print(_json(value), flush=True)


def json_list(values: Iterable[Any]) -> None:
    """One JSON document that is a list, without having all of it in memory."""
    separator = "[\n"
    for value in values:
        print(f"{separator}{_json(value)}", end="")
        separator = ",\n"
    print("[]" if separator == "[\n" else "\n]")


def _json(value: Any, *, indent: int | None = None) -> str:
    # Other encodings cannot hold every character, and JSON can say each in ASCII.
    ascii_only = (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"
    return json.dumps(value, ensure_ascii=ascii_only, indent=indent)
