"""A7, E6, X3: output as text: only what is new, never twice, and what is missing is said."""

import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds
from backburner.work.log.measure import measure
from backburner.work.log.read import Chunk, Streams, read_output
from backburner.work.log.stream import read_stream
from tests.work.log.jobs import running_job, seq_bytes

KIB = 1024
SMALL = LogBounds(head=8 * KIB, tail=32 * KIB, slack=16 * KIB)

TEXTS = [b"line\n", b"\r50%", "€".encode(), b"31", b"m"]
PARTS = [b"\xe2", b"\x82", b"\xff", b"\0", b"\x07"]
SEQUENCES = [b"\x1b", b"\x1b[", b"\x1b]0;t", b"\x1b\\", b"\x1b(", b"\x1bP"]
job_output = st.binary() | st.lists(st.sampled_from([*TEXTS, *PARTS, *SEQUENCES])).map(b"".join)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "output.log"


def append(log: Path, data: bytes | str) -> None:
    with log.open("ab") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


@pytest.mark.parametrize("what", ["folder", "pipe", "circle", "map", "other map", "map folder"])
def test_what_a_job_puts_in_the_place_of_its_log_is_an_error_for_which_nobody_waits(
    log: Path, what: str
) -> None:
    beside = log.with_name(f"{log.name}.map")
    match what:
        case "folder":
            log.mkdir()
        case "pipe":
            os.mkfifo(log)
        case "circle":
            log.symlink_to(log.name)
        case "map folder":
            log.touch()
            beside.mkdir()
        case _:
            log.touch()
            beside.write_text("not ours" if what == "map" else "[]")
    with pytest.raises(OSError):  # noqa: PT011 - each has a number of its own
        read_stream(log)
    with pytest.raises(OSError):  # noqa: PT011
        LogBounder(log).bound(final=True)


@given(st.lists(job_output))
def test_a7_raw_reads_put_together_are_the_log(pieces: list[bytes]) -> None:
    """X3: successive cursors neither repeat a byte nor skip one."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "output.log"
        given, cursor = "", None
        for piece in pieces:
            append(log, piece)
            chunk = read_output(log, since=cursor, finished=False, raw=True, max_chars=None)
            given, cursor = given + chunk.text, chunk.cursor
            assert not chunk.complete
        chunk = read_output(log, since=cursor, finished=True, raw=True, max_chars=None)
        assert given + chunk.text == b"".join(pieces).decode("utf-8", "replace")
        assert chunk.complete
        assert chunk.dropped == 0
        assert chunk.total == sum(map(len, pieces))
        again = read_output(log, since=chunk.cursor, finished=True)
        assert (again.text, again.cursor) == ("", chunk.cursor)


@given(st.lists(st.binary(max_size=9000), max_size=30), st.booleans(), st.booleans())
def test_e6_a_bounded_log_is_given_once_and_in_order(
    pieces: list[bytes], copying: bool, often: bool
) -> None:
    """X3: with a log that loses its middle, what is given and what is dropped is everything."""
    pieces = [piece.replace(b"\0", b"0") for piece in pieces]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "output.log"
        bounds = LogBounds(head=4096, tail=8192, slack=4096)
        bounder = LogBounder(log, bounds, copying=copying)
        everything, position, seen = b"", 0, 0
        for number, piece in enumerate(pieces):
            append(log, piece)
            everything += piece
            bounder.bound(final=number % 7 == 6)
            if often or number % 3 == 0:
                read = read_stream(log, position)
                assert read.start == position
                for segment in read.segments:
                    assert segment.offset >= position
                    assert segment.data == everything[segment.offset : segment.end]
                    position = segment.end
                    seen += len(segment.data)
                seen += read.dropped
                position = read.end
                assert position == seen == len(everything)


@given(st.lists(job_output, max_size=5))
def test_x3_no_noise_is_left_in_folded_reads(pieces: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "output.log"
        cursor = None
        for piece in pieces:
            append(log, piece)
            chunk = read_output(log, since=cursor, finished=False)
            cursor = chunk.cursor
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", chunk.text)


@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        (b"caf\xc3", b"\xa9\n", ("caf", "é\n")),
        (b"a\xf0\x9f\x98", b"\x80", ("a", "😀")),
        (b"a\x1b", b"[31mb", ("a", "b")),
        (b"a\x1b[3", b"1mb", ("a", "b")),
        (b"a\x1b]0;my ti", b"tle\x07b", ("a", "b")),
        (b"a\x1b]0;title\x1b", b"\\b", ("a", "b")),
        (b"a\x1b(", b"Bb", ("a", "b")),
        (b"a\x1b[31m", b"b", ("a", "b")),
    ],
)
def test_a7_nothing_is_cut_in_two_while_the_job_runs(
    log: Path, first: bytes, second: bytes, texts: tuple[str, str]
) -> None:
    append(log, first)
    chunk = read_output(log, finished=False)
    assert chunk.text == texts[0]
    append(log, second)
    assert read_output(log, since=chunk.cursor, finished=False).text == texts[1]


def test_a7_half_a_character_is_given_in_the_end(log: Path) -> None:
    append(log, b"caf\xc3")
    assert read_output(log, finished=True).text == "caf\ufffd"


def test_x3_a_sequence_without_an_end_is_not_waited_for_for_ever(log: Path) -> None:
    append(log, b"\x1b]0;" + b"x" * 10_000)
    chunk = read_output(log, finished=False)
    assert chunk.text == "0;" + "x" * 10_000


def test_a7_no_log_is_an_empty_chunk(log: Path) -> None:
    assert read_output(log, finished=False) == Chunk("", "1.0", 0, 0, None, complete=False)
    chunk = read_output(log, log.with_name("stderr.log"), since="1.5.6", finished=True)
    assert chunk == Chunk("", "1.5.6", 0, 0, "", complete=True)


def test_a7_long_output_is_head_and_tail_with_a_note(log: Path) -> None:
    lines = [f"line {number}\n" for number in range(10_000)]
    append(log, "".join(lines))
    text = read_output(log, finished=True, max_chars=2_000).text
    assert len(text) <= 2_000
    head, note, tail = re.split(r"(?m)^(… [\d,]+ characters left out …)\n", text)
    assert "".join(lines).startswith(head)
    assert "".join(lines).endswith(tail)
    assert head.endswith("\n")
    assert len(tail) > len(head) > 300
    left_out = int(re.sub(r"\D", "", note))
    assert len(head) + left_out + len(tail) == sum(map(len, lines))


@given(
    st.integers(0, 3_000), st.sampled_from(["", "\n", "line\n", "a much longer line, this one\n"])
)
def test_x3_max_chars_holds(limit: int, line: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "output.log"
        append(log, (f"x{line}" * 20_000)[:20_000])
        bounds = LogBounds(4096, 8192, 0)
        LogBounder(log, bounds).bound(final=True)
        chunk = read_output(log, finished=True, raw=True, max_chars=limit)
        assert len(chunk.text) <= limit
        if limit > 500:
            assert "characters left out" in chunk.text
            assert "4.1 kB of output dropped" in chunk.text


def test_e6_what_was_dropped_is_said_on_a_line_of_its_own(log: Path) -> None:
    append(log, "".join(f"{number:05}\n" for number in range(50_000)))
    result = LogBounder(log, SMALL).bound(final=True)
    chunk = read_output(log, finished=True, max_chars=None)
    assert chunk.dropped == result.dropped
    assert chunk.total == result.total == 300_000
    assert measure(log) == (result.total, result.dropped)
    before, after = chunk.text.split("\n… 258.0 kB of output dropped here …\n")
    assert before.startswith("00000\n00001\n")
    assert re.fullmatch(r"(\d{5}\n)+", after)  # from the next full line on
    assert after.endswith("49999\n")
    # The note is not lost when the middle is cut.
    assert "left out, 258.0 kB of output dropped …\n" in read_output(log, finished=True).text


def test_e6_a_cursor_into_the_hole_goes_on_behind_it(log: Path) -> None:
    append(log, "".join(f"{number:05}\n" for number in range(50_000)))
    result = LogBounder(log, SMALL).bound(final=True)
    gap = result.total - SMALL.tail - 100_000
    chunk = read_output(log, since=f"1.{gap}", finished=True, max_chars=None)
    assert re.match(r"… [\d.]+ kB of output dropped here …\n(\d{5}\n)+\Z", chunk.text)
    assert 90_000 < chunk.dropped < result.dropped
    assert chunk.cursor == f"1.{result.total}"


def test_x3_a_log_that_nobody_bounds_yet_is_read_in_bounds(log: Path) -> None:
    append(log, seq_bytes(0, 3_000_000))
    read = read_stream(log)
    assert sum(len(segment.data) for segment in read.segments) == 1280 * KIB
    assert read.dropped == 0
    assert [gap.dropped for gap in read.gaps] == [0]
    chunk = read_output(log, finished=False, max_chars=None)
    assert chunk.dropped == 0
    assert "\n… 1.7 MB of output left out here …\n" in chunk.text
    assert chunk.cursor == "1.3000000"
    assert (
        "characters left out, 1.7 MB of output not read …\n"
        in read_output(log, finished=False).text
    )


def test_x3_dropped_and_left_out_are_told_apart(log: Path) -> None:
    append(log, seq_bytes(0, 300_000))
    LogBounder(log, SMALL).bound(final=True)
    append(log, seq_bytes(300_000, 600_000))
    chunk = read_output(log, finished=False, max_chars=None, bounds=SMALL)
    assert "258.0 kB of output dropped here, 301.0 kB left out here …\n" in chunk.text
    assert chunk.dropped == 258_048


def test_x3_one_very_long_line_is_shown_all_the_same(log: Path) -> None:
    append(log, "ß" * 500_000)
    LogBounder(log, SMALL).bound(final=True)
    text = read_output(log, finished=True, max_chars=None).text
    assert re.fullmatch(r"ß+\n… [\d.]+ kB of output dropped here …\nß+", text)


def test_a7_only_lines_that_match(log: Path) -> None:
    append(log, "\x1b[31merror\x1b[0m: one\nfine\nerror: two\nwarning\rerror: 3\n")
    assert read_output(log, finished=True, grep="^error").text == (
        "error: one\nerror: two\nerror: 3\n"
    )
    assert read_output(log, finished=True, grep="(?i)ERROR: [t3]").text == (
        "error: two\nerror: 3\n"
    )
    assert read_output(log, finished=True, grep="31m.*one", raw=True).text == (
        "\x1b[31merror\x1b[0m: one\n"
    )
    assert read_output(log, finished=True, grep="absent").text == ""


def test_x3_a_match_is_not_missed_between_two_reads(log: Path) -> None:
    append(log, "ok\nerr")
    first = read_output(log, finished=False, grep="error")
    assert (first.text, first.cursor) == ("", "1.3")
    append(log, "or: disk\nrest")
    second = read_output(log, since=first.cursor, finished=False, grep="error")
    assert second.text == "error: disk\n"
    assert read_output(log, since=second.cursor, finished=True, grep="rest").text == "rest"


def test_x3_a_pattern_cannot_take_exponential_time(log: Path) -> None:
    append(log, "a" * 50_000 + "b\n")
    assert read_output(log, finished=True, grep="(a+)+$").text == ""


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[z-a]", r"(?<=x)y", r"\1", "*"])
def test_x3_a_wrong_pattern_is_refused_with_its_reason(
    log: Path, pattern: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=r"grep is not an RE2 pattern: .+"):
        read_output(log, finished=True, grep=pattern)
    assert capfd.readouterr() == ("", "")


def test_e6_a_search_says_that_not_all_was_there(log: Path) -> None:
    append(log, "".join(f"{number:05}\n" for number in range(50_000)))
    LogBounder(log, SMALL).bound(final=True)
    text = read_output(log, finished=True, grep="999$").text
    assert text == "00999\n… 258.0 kB of output dropped here …\n" + "".join(
        f"{number}999\n" for number in range(44, 50)
    )


@pytest.mark.parametrize("count", [0, 1, 3, 5, 6, 100])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a7_the_last_lines(log: Path, count: int, end: str) -> None:
    lines = ["one", "two", "three", "four", "five", "six"]
    append(log, "\n".join(lines) + end)
    chunk = read_output(log, finished=True, last_lines=count)
    kept = lines[len(lines) - min(count, len(lines)) :]
    assert chunk.text == ("\n".join(kept) + end if kept else "")
    assert chunk.cursor == f"1.{chunk.total}"


def test_x3_the_last_lines_of_a_large_log_cost_only_its_end(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, seq_bytes(0, 1_200_000))
    lengths: list[int] = []
    real = os.pread

    def pread(fd: int, length: int, offset: int) -> bytes:
        lengths.append(length)
        return real(fd, length, offset)

    monkeypatch.setattr(os, "pread", pread)
    text = read_output(log, finished=True, last_lines=20).text
    assert text.encode() == b"".join(seq_bytes(0, 1_200_000).splitlines(keepends=True)[-20:])
    assert sum(lengths) <= 64 * KIB
    lengths.clear()
    assert read_output(log, since="1.1199000", finished=True).text
    assert sum(lengths) == 1_000


def test_x3_repeats_do_not_hide_the_last_lines(log: Path) -> None:
    append(log, "first\nsecond\n" + "again\n" * 100_000 + "end\n")
    text = read_output(log, finished=True, last_lines=4).text
    assert text == "second\nagain\n  ⋮ 99,999 more times\nend\n"
    assert read_output(log, finished=True, last_lines=2, grep="second|first").text == (
        "first\nsecond\n"
    )


@pytest.mark.parametrize(
    ("streams", "text", "stderr", "cursor"),
    [
        ("both", "out\n", "err\n", "1.4.4"),
        ("out", "out\n", None, "1.4.0"),
        ("err", "", "err\n", "1.0.4"),
    ],
)
def test_a7_the_streams_are_told_apart(
    log: Path, streams: Streams, text: str, stderr: str | None, cursor: str
) -> None:
    """C2 too: each has its place in the cursor, and one that is not asked for stays there."""
    errors = log.with_name("stderr.log")
    append(log, "out\n")
    append(errors, "err\n")
    chunk = read_output(log, errors, finished=False, streams=streams)
    assert (chunk.text, chunk.stderr_text, chunk.cursor) == (text, stderr, cursor)
    rest = read_output(log, errors, since=chunk.cursor, finished=True)
    assert (chunk.text or rest.text, chunk.stderr_text or rest.stderr_text) == ("out\n", "err\n")


def test_x3_both_streams_share_the_limit(log: Path) -> None:
    errors = log.with_name("stderr.log")
    append(log, "o" * 50_000)
    append(errors, "e" * 300)
    chunk = read_output(log, errors, finished=True, max_chars=4_000)
    assert chunk.stderr_text == "e" * 300
    assert 3_500 < len(chunk.text) <= 3_700
    append(errors, "e" * 50_000)
    chunk = read_output(log, errors, finished=True, max_chars=4_000)
    assert chunk.stderr_text is not None
    assert len(chunk.text) + len(chunk.stderr_text) <= 4_000
    assert min(len(chunk.text), len(chunk.stderr_text)) > 1_700


def test_a7_a_cursor_belongs_to_an_attempt(log: Path) -> None:
    append(log, "second attempt\n")
    chunk = read_output(log, since="1.4711", finished=True, attempt=2)
    assert (chunk.text, chunk.cursor) == ("second attempt\n", "2.15")
    with pytest.raises(ValueError, match="attempt 3"):
        read_output(log, since="3.0", finished=True, attempt=2)
    with pytest.raises(ValueError, match="not a cursor"):
        read_output(log, since="yesterday", finished=True)


def test_a7_an_emptied_log_is_said(log: Path) -> None:
    """`echo x > /dev/stderr` empties the file that standard error is."""
    script = "echo one; echo two > /dev/stdout; echo three"
    append(log, "a line from before\n")
    cursor = read_output(log, finished=False).cursor
    with running_job(log, "sh", "-c", script) as job:
        assert job.wait() == 0
    chunk = read_output(log, since=cursor, finished=True)
    assert chunk.text == "… the job emptied its own log here …\ntwo\nthree\n"


@pytest.mark.parametrize("wrong", [{"max_chars": -1}, {"last_lines": -1}])
def test_x3_negative_numbers_are_refused(log: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="0 or more"):
        read_output(
            log,
            finished=True,
            max_chars=wrong.get("max_chars"),
            last_lines=wrong.get("last_lines"),
        )
