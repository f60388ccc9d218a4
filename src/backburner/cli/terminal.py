"""What is known about the terminal, if there is one: its size, and whether it shows colours."""

import os
from typing import TextIO

COLOURS = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "dim": "2",
    "bold": "1",
}


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees what is written there; a closed stream is none."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def shows_colours(stream: TextIO | None) -> bool:
    """Whether colours are wanted: https://no-color.org, and terminals that have none."""
    return (
        is_terminal(stream)
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM", "") not in {"", "dumb"}
    )


def paint(text: str, colour: str | None) -> str:
    """The text in a colour; the caller knows that colours are wanted."""
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if colour and text else text


def size(stream: TextIO | None) -> os.terminal_size | None:
    """Columns and lines of the terminal; None where there is none, and nothing has to fit."""
    if stream is None or not is_terminal(stream):
        return None
    columns = os.environ.get("COLUMNS", "")
    try:
        measured = os.get_terminal_size(stream.fileno())
    except OSError:
        measured = os.terminal_size((80, 24))
    if columns.isdigit() and int(columns) > 0:
        return os.terminal_size((int(columns), measured.lines))
    # A terminal that does not know its size says 0.
    return measured if measured.columns > 0 else os.terminal_size((80, 24))


def width(stream: TextIO | None) -> int | None:
    """Columns of the terminal; None where nothing has to fit."""
    measured = size(stream)
    return None if measured is None else measured.columns
