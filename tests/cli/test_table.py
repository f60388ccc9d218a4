"""Tables and text widths: what fits, what is cut, what a terminal must never be sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.cli.table import Cell, Column, Row, Table
from backburner.cli.textwidth import clean, columns_of, cut


def lines(table: Table, *rows: Row) -> list[str]:
    return list(table.lines(rows))


def test_columns_are_as_wide_as_they_need_to_be() -> None:
    table = Table([Column("ID"), Column("AGE", right=True), Column("TITLE")])
    assert lines(table, ["bg_1", "5s", "one"], ["bg_22", "12m 3s", "two"]) == [
        "ID        AGE  TITLE",
        "bg_1       5s  one",
        "bg_22  12m 3s  two",
    ]


def test_a_table_without_titles_has_no_heading() -> None:
    assert lines(Table([Column(""), Column("")]), ["a", "b"]) == ["a  b"]


def test_further_pages_have_no_heading() -> None:
    table = Table([Column("ID")])
    assert lines(table, ["first"]) == ["ID", "first"]
    assert lines(table, ["second"]) == ["second"]


def test_the_widest_column_gives_way_to_the_terminal() -> None:
    table = Table([Column("ID"), Column("TITLE", least=5)], width=16)
    assert lines(table, ["bg_123", "a very long title"]) == ["ID      TITLE", "bg_123  a very…"]


def test_an_id_is_never_cut() -> None:
    table = Table([Column("ID"), Column("TITLE", least=5)], width=8)
    assert lines(table, ["bg_1234567890", "title"]) == ["ID", "bg_1234567890"]


def test_wide_characters_take_two_columns() -> None:
    table = Table([Column("TITLE"), Column("X")])
    assert lines(table, ["日本", "1"], ["abcd", "2"]) == ["TITLE  X", "日本   1", "abcd   2"]
    assert columns_of("e\u0301") == 1  # an accent that is drawn over its letter
    assert cut("日本語", 4) == "日…"


def test_colours_are_not_counted_and_only_given_when_wanted() -> None:
    row = [Cell("failed", "red"), Cell("x")]
    columns = [Column(""), Column("")]
    assert lines(Table(columns, colours=True), row, ["ok", "y"]) == [
        "\x1b[31mfailed\x1b[0m  x",
        "ok      y",
    ]
    assert lines(Table(columns), row) == ["failed  x"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\x1b]0;title\x07plain", "plain"),
        ("\u202etxet", "txet"),
        ("a\x00b\x9b31mc", "abc"),
        ("日本", "日本"),
    ],
)
def test_text_in_a_table_cannot_command_the_terminal(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text())
def test_clean_text_is_printable(text: str) -> None:
    assert all(character.isprintable() or character == "\u200d" for character in clean(text))


@given(st.text(), st.integers(0, 30))
def test_cut_text_fits(text: str, columns: int) -> None:
    text = clean(text)
    assert columns_of(cut(text, columns)) <= columns
    if columns_of(text) <= columns:
        assert cut(text, columns) == text


@given(
    st.lists(st.tuples(st.text(), st.text(max_size=8), st.text()), min_size=1, max_size=5),
    st.integers(30, 120),
)
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, str, str]], width: int) -> None:
    table = Table([Column("A", least=5), Column("B"), Column("C", least=5)], width=width)
    for line in table.lines(rows):
        assert columns_of(line) <= width
