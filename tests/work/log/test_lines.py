"""X4: the lines of a growing log, each once, whatever becomes of the log meanwhile."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds
from backburner.work.log.lines import AT_ONCE, OVERLAP, PIECE, LineReader, Piece, Place
from tests.waiting import wait_until
from tests.work.log.jobs import running_job

KIB = 1024


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "output.log"


def write(log: Path, data: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)


def pieces_of(reader: LineReader) -> list[Piece]:
    """Everything that there is."""
    found, more = reader.read()
    while more:
        pieces, more = reader.read()
        found += pieces
    return found


def texts(reader: LineReader) -> list[str]:
    return [piece.text for piece in pieces_of(reader)]


def test_x4_a_line_is_given_once_and_whole(log: Path) -> None:
    reader = LineReader(str(log))
    assert reader.read() == ([], False)  # no log yet
    write(log, b"one\ntw")
    assert texts(reader) == ["one"]
    unfinished = reader.unfinished()
    assert unfinished is not None
    assert (unfinished.text, unfinished.line) == ("tw", 4)
    write(log, b"o\n\n\nthree")
    assert texts(reader) == ["two"]
    assert [piece.text for piece in reader.rest()] == ["three"]
    assert reader.rest() == []
    assert texts(reader) == []


def test_x4_terminal_noise_is_taken_out(log: Path) -> None:
    write(log, b"\x1b[1;32mlistening\x1b[0m on \x1b]8;;http://a\x07here\x1b]8;;\x07\r\n")
    write(log, b" 10%\r 50%\r100%\n\xff\xc3\xa9\n")
    assert texts(LineReader(str(log))) == ["listening on here", " 10%", " 50%", "100%", "\ufffdé"]


def test_x4_a_long_line_comes_in_pieces_that_overlap(log: Path) -> None:
    write(log, b"x" * (PIECE - 3) + b"needle" + b"y" * 3 * PIECE)
    reader = LineReader(str(log))
    pieces = pieces_of(reader)
    assert all(len(piece.text) == PIECE and piece.line == 0 for piece in pieces)
    assert any("needle" in piece.text for piece in pieces)
    unfinished = reader.unfinished()
    assert unfinished is not None
    assert OVERLAP <= len(unfinished.text) <= PIECE
    write(log, b"\nnext\n")
    *_, last, following = pieces_of(reader)
    assert (last.line, following.text) == (0, "next")
    assert following.line == 4 * PIECE + 3 + 1


def test_x4_blank_lines_without_end_are_no_answer_and_no_hang(log: Path) -> None:
    write(log, b"\n" * (3 * AT_ONCE) + b"at last\n")
    assert texts(LineReader(str(log))) == ["at last"]


def test_x4_one_read_takes_a_bounded_amount(log: Path) -> None:
    write(log, b"a line of text\n" * 100_000)
    pieces, more = LineReader(str(log)).read()
    assert more
    assert AT_ONCE // 2 < sum(len(piece.text) + 1 for piece in pieces) <= AT_ONCE


def test_x4_an_emptied_log_is_read_from_its_start(log: Path) -> None:
    reader = LineReader(str(log))
    write(log, b"before, and long enough\nhalf")
    assert texts(reader) == ["before, and long enough"]
    os.truncate(log, 0)
    write(log, b"after\n")
    assert texts(reader) == ["after"]
    assert reader.skipped == 0


@given(
    lines=st.lists(st.binary(max_size=12).filter(lambda line: not set(line) & set(b"\r\n"))),
    cuts=st.lists(st.integers(0, 200), max_size=5),
    stop=st.integers(0, 40),
)
def test_x4_another_reader_goes_on_where_one_stopped(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cuts: list[int], stop: int
) -> None:
    log = tmp_path_factory.mktemp("lines") / "output.log"
    data = b"".join(line + b"\n" for line in lines)
    reader = LineReader(str(log))
    pieces: list[Piece] = []
    at = 0
    for cut in [*sorted(cuts), len(data)]:
        write(log, data[at : max(at, cut)])
        at = max(at, cut)
        pieces += pieces_of(reader)
    assert [piece.line for piece in pieces] == sorted({piece.line for piece in pieces})
    assert len(pieces) == sum(1 for line in lines if line)
    place = pieces[stop].after if stop < len(pieces) else Place()
    assert pieces_of(LineReader(str(log), place)) == (
        pieces[stop + 1 :] if stop < len(pieces) else pieces
    )


@pytest.mark.parametrize("copying", [False, True], ids=["holes", "copied"])
def test_x4_x3_in_a_flood_lines_are_read_or_counted(log: Path, copying: bool) -> None:
    """Every line that is given is one that was written, in order, and the rest is counted."""
    bounder = LogBounder(log, LogBounds(8 * KIB, 64 * KIB, 16 * KIB), copying=copying)
    reader = LineReader(str(log))
    numbers: list[int] = []
    with running_job(log, "seq", "1000000000", "9999999999") as job:
        wait_until(lambda: log.exists() and log.stat().st_size > 0)
        while reader.skipped < 1024 * KIB or len(numbers) < 20_000:
            bounder.bound()
            # Ten digits: what is shorter is the rest of a line that was cut.
            numbers += [int(piece.text) for piece in reader.read()[0] if len(piece.text) == 10]
        assert job.poll() is None
    assert numbers[0] == 1_000_000_000
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == len(numbers)
    assert numbers[-1] - numbers[0] > 8 * KIB


def test_x4_x3_what_was_let_go_of_while_it_was_read_is_not_the_end(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(log, b"first\n" + b"." * AT_ONCE + b"\n" * AT_ONCE)
    reader = LineReader(str(log))
    assert texts(reader)[0] == "first"
    write(log, b"." * 1024 * KIB + b"\nlast\n")
    read = os.pread

    def let_go_and_read(fd: int, length: int, offset: int) -> bytes:
        LogBounder(log, LogBounds(4 * KIB, 64 * KIB, 0)).bound(final=True)
        return read(fd, length, offset)

    monkeypatch.setattr("backburner.work.log.stream.os.pread", let_go_and_read)
    assert texts(reader)[-1] == "last"
    assert reader.skipped > 900 * KIB


def test_x4_a_hole_up_to_the_end_is_the_end(log: Path) -> None:
    write(log, b"first\n")
    os.truncate(log, 64 * KIB)
    reader = LineReader(str(log))
    assert texts(reader)[0].startswith("first")
    assert reader.read() == ([], False)


def test_x4_blocks_without_anything_of_interest_are_passed_over(log: Path) -> None:
    """Where each line would be, no piece is made; what may be of interest comes line by line."""
    write(log, b"dull\n" * 10_000 + b"a \x1b[31mgem\x1b[0m\n" + b"dull\n" * 10_000 + b"a gem")
    reader = LineReader(str(log))
    reader.interesting = lambda text: "gem" in text
    pieces = pieces_of(reader)
    assert 1 <= len(pieces) < 4000, "those of the same block"
    assert [piece.line for piece in pieces if piece.text == "a gem"] == [50_000]
    assert reader.place == Place(100_015, 100_015)
    unfinished = reader.unfinished()
    assert unfinished is not None
    assert unfinished.text == "a gem"
