"""What a job reads from, and the size of its terminal."""

import re
from enum import StrEnum

from backburner.model.errors import UsageError
from backburner.model.values import value


class Input(StrEnum):
    """What standard input is."""

    NONE = "none"
    """Empty: who reads finds the end at once."""
    PIPE = "pipe"
    """What is sent, until the end is sent."""
    PTY = "pty"
    """A terminal, for output too."""

    @classmethod
    def chosen(cls, *, stdin: bool, pty: bool) -> "Input":
        """From the two options that a caller has."""
        if stdin and pty:
            raise UsageError(
                "a terminal has an input already", remedy="leave out --stdin (stdin=True)"
            )
        return cls.PTY if pty else cls.PIPE if stdin else cls.NONE


_MOST_CELLS = 9999
"""More than any screen has; programs make room for all of it."""
_SIZE = re.compile(r"(\d{1,4})x(\d{1,4})", re.ASCII)


@value
class WindowSize:
    """The size of a terminal."""

    columns: int = 80
    rows: int = 24

    def __post_init__(self) -> None:
        if not (1 <= self.rows <= _MOST_CELLS and 1 <= self.columns <= _MOST_CELLS):
            raise UsageError(
                f"a terminal cannot have {self.columns} columns and {self.rows} rows",
                remedy=f"give 1 to {_MOST_CELLS} of each",
            )

    def __str__(self) -> str:
        return f"{self.columns}x{self.rows}"

    @classmethod
    def parse(cls, text: str) -> "WindowSize":
        """From `120x40`: columns, then rows."""
        found = _SIZE.fullmatch(text.strip().lower())
        if found is None:
            raise UsageError(
                f"{text!r} is no size of a terminal",
                remedy="write columns and rows, for example 120x40",
            )
        return cls(int(found[1]), int(found[2]))
