"""The line that sends a shell block to the background (A1), and the block without it.

Pure, linear in the text, and never raises: the text comes from a model.
"""

from typing import NamedTuple

MARKERS = frozenset(
    {"#!bg", "#bg", "# bg", "#background", "# background", "@background", "# @background"}
)
"""As they stand alone on their line, in any case. Nothing else is one: a marker that was guessed
would take a line away from a script."""

_BYTE_ORDER_MARK = "\ufeff"
_LONGEST = max(map(len, MARKERS))


class Split(NamedTuple):
    """A shell block, and whether it is meant for the background."""

    command: str
    """What follows the marker's line, exactly as it was; the whole text where there is none."""
    background: bool
    """Whether there was a marker."""


def split(text: str) -> Split:
    """Take the background marker off ``text``, where its first line that is not empty is one.

    Lines end where they do for a shell, at a line feed. White space around the marker, a carriage
    return and a byte order mark before everything belong to the marker's line.
    """
    start = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end].strip()
        if line:
            return Split(text[end + 1 :], True) if _is_marker(line) else Split(text, False)
        start = end + 1
    return Split(text, False)


def _is_marker(line: str) -> bool:
    # ASCII alone: there are letters whose lower case is one of ours, and they are not ours.
    return len(line) <= _LONGEST and line.isascii() and line.lower() in MARKERS
