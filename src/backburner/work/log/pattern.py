"""Patterns from models and strangers: compiled with RE2, whose time is linear in the text.

Memory is bounded too, and with it how slow a pattern can be made: the time for a line grows with
the size of what the pattern compiles to.
"""

import re
from collections.abc import Callable

from backburner.model.errors import UsageError
from backburner.model.values import value

Matcher = Callable[[str], object]

_TELLS_LINES_APART = re.compile(r"\\[AzQ]|\(\?[a-zA-Z]*-")
"""What means something else in a text of several lines, whatever is put before it."""

MOST_MEMORY = 1024 * 1024
"""Of a pattern that is matched by the keeper, for as long as a job runs."""


def compile_pattern(pattern: str, *, most_memory: int | None = None) -> Matcher:
    """A function that is true of a text in which the pattern is found. ValueError with the reason

    where it is no RE2 pattern, or too large.
    """
    import re2

    options = re2.Options()
    options.log_errors = False  # to our standard error
    options.never_capture = True
    if most_memory is not None:
        options.max_mem = most_memory
    try:
        return re2.compile(pattern, options).search
    except re2.error as error:
        reason = error.args[0] if error.args else error
        if isinstance(reason, bytes):
            reason = reason.decode(errors="replace")
        raise ValueError(str(reason)) from None
    except UnicodeEncodeError:  # bytes that are no UTF-8, from a command line
        raise ValueError("it is not UTF-8") from None


def check_pattern(pattern: str) -> None:
    """UsageError where the keeper could not match this."""
    try:
        compile_pattern(pattern, most_memory=MOST_MEMORY)
    except ValueError as error:
        raise UsageError(
            f"{pattern!r} is no pattern: {error}",
            remedy="use RE2 syntax (no look-around, no back-references); \\ before . [ ( * + ?",
        ) from None


@value
class LinePattern:
    """A pattern that is looked for in one line after the other."""

    matches: Matcher
    """Of one line."""
    anywhere: Matcher | None
    """Of several lines: false where it matches none of them. None where that cannot be asked."""

    @classmethod
    def compiled(cls, pattern: str) -> "LinePattern":
        """ValueError where it does not compile."""
        matches = compile_pattern(pattern, most_memory=MOST_MEMORY)
        if _TELLS_LINES_APART.search(pattern):
            return cls(matches, None)
        try:
            return cls(matches, compile_pattern(f"(?m:{pattern})", most_memory=MOST_MEMORY))
        except ValueError:  # a little larger than the other, and too large
            return cls(matches, None)
