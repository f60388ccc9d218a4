"""Cursors: where to go on. For callers they are a text that means nothing."""

from typing import Annotated

from fastapi import Query

Cursor = Annotated[
    str | None,
    Query(pattern=r"^[0-9]{1,18}$", description="`next` of the page before."),
]
Limit = Annotated[int, Query(ge=1, le=200, description="Items of one page.")]


def number(cursor: str | None) -> int | None:
    """What a cursor stands for."""
    return None if cursor is None else int(cursor)


def cursor(number: int | None) -> str | None:
    """The cursor that stands for this."""
    return None if number is None else str(number)
