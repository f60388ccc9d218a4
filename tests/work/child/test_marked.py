"""E6: the output of a tool carries its stream, line by line."""

import io
import sys

import pytest

from backburner.work.child.marked import MarkedLog, MarkedStream


@pytest.mark.parametrize(
    ("pieces", "log"),
    [
        ([("stdout", "one\ntwo\n")], "[stdout] one\n[stdout] two\n"),
        ([("stdout", "on"), ("stdout", "e\n")], "[stdout] one\n"),
        ([("stdout", "half"), ("stderr", "oh\n")], "[stdout] half\n[stderr] oh\n"),
        ([("stderr", "a"), ("stderr", ""), ("stdout", "b")], "[stderr] a\n[stdout] b"),
    ],
)
def test_e6_each_line_says_where_it_was_written(pieces: list[tuple[str, str]], log: str) -> None:
    target = io.StringIO()
    marked = MarkedLog(target)
    for stream, text in pieces:
        assert MarkedStream(marked, stream).write(text) == len(text)
    assert target.getvalue() == log


def test_e6_it_is_a_stream_that_print_and_programs_can_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = io.StringIO()
    stream = MarkedStream(MarkedLog(target), "stdout")
    monkeypatch.setattr(sys, "stdout", stream)
    print("a", 1)
    assert target.getvalue() == "[stdout] a 1\n"
    assert stream.writable()
