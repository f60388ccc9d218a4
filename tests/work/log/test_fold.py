"""X3: terminal noise (colour codes, redrawn progress bars, repeats) is folded, in linear time."""

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.work.log.fold import fold, strip_controls

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.mark.parametrize(
    ("noisy", "shown"),
    [
        pytest.param("\x1b[1;31mred\x1b[0m end\n", "red end\n", id="colour"),
        pytest.param("\x1b[38:2::1:2:3mx\x1b[?25l\x1b[>4;2my\n", "xy\n", id="private CSI"),
        pytest.param("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\\n", "ab\n", id="OSC"),
        pytest.param("\x1bP1$r0m\x1b\\a\x1b_apc\x1b\\b\x1b^pm\x1b\\c\n", "abc\n", id="DCS APC PM"),
        pytest.param("\x1b(0a\x1b)Bb\x1b%Gc\x1b#8d\n", "abcd\n", id="character sets"),
        pytest.param("\x1b7a\x1b8b\x1bMc\x1b=d\x1bce\n", "abcde\n", id="two letters"),
        pytest.param("a\x1b", "a", id="lone escape at the end"),
        pytest.param("a\x1b\x1b\x1b[32mb\x1b\nc", "ab\nc", id="escapes in a row"),
        pytest.param("a\x1b[12", "a", id="CSI without its end"),
        pytest.param("a\x1b]0;title\nb\n", "a0;title\nb\n", id="OSC without its end"),
        pytest.param("a\x9b31mb\x9d0;t\x9cc\x85d\n", "abcd\n", id="eight bits"),
        pytest.param("ding\x07 \x00nul\x01\x7f\n", "ding nul\n", id="bell, NUL and others"),
        pytest.param("a\tb\n", "a\tb\n", id="tabs stay"),
        pytest.param("one\r\ntwo\r\r\n", "one\ntwo\n", id="CRLF"),
        pytest.param("10%\r 50%\r100%\ndone\n", "100%\ndone\n", id="carriage returns"),
        pytest.param("10%\r", "10%", id="redraw not yet begun"),
        pytest.param("long line\rshort\n", "shortline\n", id="a shorter redraw leaves the rest"),
        pytest.param("long line\rshort\x1b[K\n", "short\n", id="erase to the end"),
        pytest.param("long line\x1b[2K\rshort\n", "short\n", id="erase the line"),
        pytest.param("working\r          \rdone\n", "done\n", id="erased with blanks"),
        pytest.param("abc\b\bX\n", "aXc\n", id="backspaces"),
        pytest.param("|\b/\b-\b\\\n", "\\\n", id="spinner"),
        pytest.param("N\bNA\bAM\bME\bE\n", "NAME\n", id="overstrike"),
        pytest.param("ok\x1b[10Gdone\x1b[3D!\n", "ok       d!ne\n", id="columns"),
        pytest.param("a\x1b[999999999999999999999Cb\n", "a" + " " * 159 + "b\n", id="far right"),
        pytest.param(
            "build\n" + "a: 1%\nb: 2%\n" + "\x1b[2A\x1b[2Ka: 50%\n\x1b[2Kb: 60%\n" + "end\n",
            "build\na: 50%\nb: 60%\nend\n",
            id="two bars",
        ),
        pytest.param(
            "one\ntwo\nthree\n\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[Gnew\n", "one\nnew\n\n", id="up"
        ),
        pytest.param("q\na\nb\nc\x1b[2F\x1b[Jnew\n", "q\nnew\n", id="erase below"),
        pytest.param("\n\rbar 2: 1%\x1b[A\rbar 1: 9%\n", "bar 1: 9%\nbar 2: 1%", id="tqdm"),
        pytest.param("before\n\x1b[2J\x1b[Hafter\n", "before\nafter\n", id="clear loses nothing"),
    ],
)
def test_x3_terminal_noise_is_folded(noisy: str, shown: str) -> None:
    assert fold(noisy) == shown


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ("a\na\n", "a\na\n"),
        ("a\na\na\n", "a\n  ⋮ 2 more times\n"),
        ("x\n" + "retry\n" * 1500 + "y\n", "x\nretry\n  ⋮ 1,499 more times\ny\n"),
        ("a\n\n\n\n\nb\n", "a\n\n  ⋮ 3 more blank lines\nb\n"),
        ("a\na\na\na", "a\n  ⋮ 2 more times\na"),  # half a line may still become another
        ("\n\n\n", "\n  ⋮ 2 more blank lines\n"),
        ("", ""),
    ],
)
def test_x3_repeated_lines_are_told_once(lines: str, shown: str) -> None:
    assert fold(lines) == shown
    assert fold(lines, repeats=False) == lines


@given(st.text())
def test_x3_no_control_character_is_left(text: str) -> None:
    assert not CONTROLS.search(fold(text))


SEQUENCES = ["K", "2K", "A", "2A", "B", "3C", "D", "2G", "E", "F", "J", "31m"]
noise = st.lists(
    st.sampled_from(["a", "bc", "ß€", "\n", "\r", "\b", "\x1b7", "\x07"])
    | st.sampled_from([f"\x1b[{sequence}" for sequence in SEQUENCES])
).map("".join)


@given(noise)
def test_x3_folding_is_what_a_terminal_shows(text: str) -> None:
    shown = fold(text, repeats=False).split("\n")
    assert [row.rstrip(" ") for row in shown] == _terminal(text)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])), st.integers(2, 30))
def test_x3_text_without_noise_is_left_alone(line: str, lines: int) -> None:
    text = "".join(f"{number}{line}\n" for number in range(lines))
    assert fold(text) == text


@given(st.text() | noise)
def test_x3_a_title_is_one_safe_line(text: str) -> None:
    title = strip_controls(text)
    assert not CONTROLS.search(title)
    assert title == title.strip()
    assert len(title.splitlines()) <= 1


def test_x3_a_title_keeps_its_words() -> None:
    assert strip_controls(" run\x1b[31m the\r\n\x1b]0;evil\x07tests\u202e \tnow\x1b[2A") == (
        "run the tests now"
    )


@pytest.mark.parametrize(
    "unit",
    [
        "\r", "\x1b", "\b", "\x1b[", "\x1b]", "\x1b]0;a", "\x1bP", "\x9d", "\x9b0", "\x00",
        "\x1b[0", "\x1b[A", "\x1b[Ax\n", "\x1b[2Kx", "x\x1b[D\x1b[K", "\x1b[999Cx\r\x1b[K", "x\r",
        "y\n", "\n\x1b[A\x1b[J", "\r\r\n", "\x1b[999A", "\x1b[9999999",
    ],
)  # fmt: skip
def test_x3_hostile_output_takes_linear_time(unit: str) -> None:
    _assert_linear(lambda size: unit * (size // len(unit)))


@pytest.mark.parametrize("unit", ["\rx", "\x1b[2Kx", "\x1b[D\x1b[K", "\bx", "\x1b[Ax", "\x1b[K"])
def test_x3_noise_after_a_long_line_takes_linear_time(unit: str) -> None:
    _assert_linear(lambda size: "a" * (size // 2) + unit * (size // 2 // len(unit)))


def _assert_linear(text: Callable[[int], str], size: int = 100_000) -> None:
    def duration(sample: str) -> float:
        before = time.process_time()
        fold(sample)
        return time.process_time() - before

    # Twice the text is four times the work if it is quadratic; small times say nothing. In turns,
    # so that a machine that gets slower does it to both.
    shorter, longer = text(size), text(2 * size)
    pairs = [(duration(shorter), duration(longer)) for _ in range(3)]
    once, twice = min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)
    assert twice < 3 * once + 0.02, f"{once:.3f} s, then {twice:.3f} s"


def _terminal(text: str) -> list[str]:
    """A terminal, written as plainly as possible: one character at a time."""
    rows: list[list[str]] = [[]]
    row = column = 0
    for token in re.findall(r"\x1b\[\d*[A-Zm]|\x1b7|.|\n", text, re.DOTALL):
        count = int(re.sub(r"\D", "", token) or "1") if len(token) > 1 else 1
        if token == "\n":
            row, column = row + 1, 0
            if row == len(rows):
                rows.append([])
        elif len(token) == 1 and token not in "\r\b\x07":
            rows[row] += " " * (column - len(rows[row]))
            rows[row][column : column + 1] = [token]
            column += 1
        elif token[-1] in "KJ":
            rows[row] = [] if "2" in token else rows[row][:column]
            if token[-1] == "J":
                del rows[row + 1 :]
        else:
            step = {"A": -count, "F": -count, "B": count, "E": count}.get(token[-1], 0)
            row = min(max(0, row + step), len(rows) - 1)
            moved = {"\b": column - 1, "D": column - count, "C": column + count, "G": count - 1}
            column = max(0, moved.get(token[-1], 0 if token[-1] in "\rEF" else column))
    return ["".join(row).rstrip(" ") for row in rows]
