"""X3: a cursor is a short text that survives truncation, and nothing else passes for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.work.log.cursor import Cursor

numbers = st.integers(0, 10**18)


@given(st.integers(1, 1000), numbers, st.none() | numbers)
def test_x3_a_cursor_is_printable_and_comes_back(
    attempt: int, stdout: int, stderr: int | None
) -> None:
    cursor = Cursor(attempt, stdout, stderr)
    assert Cursor.parse(str(cursor)) == cursor
    assert str(cursor).isascii()


def test_x3_cursors_look_as_documented() -> None:
    assert str(Cursor(1, 48213)) == "1.48213"
    assert str(Cursor(2, 48213, 77)) == "2.48213.77"


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "1.", ".1", "1.2.3.4", "1.-2", "1.+2", "01.2", "1.02", "1. 2", "1.2\n", "1.2.",
        "a.b", "1.²", "1.٣", "1.1e3", "1.1_000", "42m", "1." + "9" * 5000,
    ],
)  # fmt: skip
def test_x3_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a cursor"):
        Cursor.parse(text)


@given(st.text())
def test_x3_a_wrong_cursor_is_never_another_error(text: str) -> None:
    try:
        cursor = Cursor.parse(text)
    except ValueError as error:
        said = str(error)
    else:
        said = str(cursor)
        assert said == text
    assert len(said) < 300
