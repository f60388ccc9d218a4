"""What a job reads from, and the sizes that a terminal can have."""

import pytest

from backburner.model.errors import UsageError
from backburner.model.input import Input, WindowSize


def test_nothing_a_pipe_or_a_terminal_but_not_both() -> None:
    assert Input.chosen(stdin=False, pty=False) is Input.NONE
    assert Input.chosen(stdin=True, pty=False) is Input.PIPE
    assert Input.chosen(stdin=False, pty=True) is Input.PTY
    with pytest.raises(UsageError, match="a terminal has an input already"):
        Input.chosen(stdin=True, pty=True)


@pytest.mark.parametrize("text", ["120x40", " 120X40 ", "0120x040"])
def test_a_size_is_columns_and_rows(text: str) -> None:
    assert WindowSize.parse(text) == WindowSize(columns=120, rows=40)
    assert str(WindowSize.parse(text)) == "120x40"


@pytest.mark.parametrize(
    "text",
    ["", "x", "80", "80x", "x24", "80x24x1", "-80x24", "80 x 24", "1e2x24", "٨٠x٢٤", "80*24"],
)
def test_what_is_no_size_is_told_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="for example 120x40"):
        WindowSize.parse(text)


@pytest.mark.parametrize(("columns", "rows"), [(0, 24), (80, 0), (10_000, 24), (80, -1)])
def test_a_size_that_no_terminal_has_is_refused(columns: int, rows: int) -> None:
    with pytest.raises(UsageError, match="cannot have"):
        WindowSize(columns, rows)
