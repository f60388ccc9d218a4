"""Texts that PostgreSQL does not hold as they are: NUL, and halves of surrogate pairs.

They are written as a character for private use and another one that stands for them, so that every
text comes back as it was; the first character itself is written so too.
"""

import re
from collections.abc import Sequence
from typing import Any, cast

_MARK = "\ue000"
_FIRST, _LAST = 0xD800, 0xDFFF
_SHIFT = 0xE100 - _FIRST
"""Surrogates become characters for private use as well, from U+E100 on."""

_OTHERS = {"\0": "\ue001", _MARK: "\ue002"}
_BACK = {stand_in: meant for meant, stand_in in _OTHERS.items()}

_UNHELD = re.compile("[\0\ue000\ud800-\udfff]")
_MARKED = re.compile(_MARK + "(.)")


def held(text: str) -> str:
    """What is written for a text."""
    return _UNHELD.sub(_mark, text)


def meant(text: str) -> str:
    """The text that was to be written."""
    return _MARKED.sub(_unmark, text) if _MARK in text else text


def held_value(value: Any) -> Any:
    """The same for any value, and for those of a list."""
    if isinstance(value, str):
        return held(value)
    if isinstance(value, list | tuple):
        return [held_value(each) for each in cast("Sequence[Any]", value)]
    return value


def meant_value(value: Any) -> Any:
    """The same for any value."""
    return meant(value) if isinstance(value, str) else value


def _mark(match: re.Match[str]) -> str:
    character = match[0]
    return _MARK + (_OTHERS.get(character) or chr(ord(character) + _SHIFT))


def _unmark(match: re.Match[str]) -> str:
    character = match[1]
    return _BACK.get(character) or chr(ord(character) - _SHIFT)
