"""A1: the line that sends a shell block to the background is taken off, and nothing else is."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner import markers
from backburner.markers import MARKERS, split

THE_SEVEN = ["#!bg", "#bg", "# bg", "#background", "# background", "@background", "# @background"]

blanks = st.text(" \t\r\u00a0", max_size=4)
line_ends = st.sampled_from(["\n", "\r\n"])
blank_lines = st.tuples(blanks, line_ends).map("".join)


@st.composite
def marker_lines(draw: st.DrawFn) -> str:
    """A marker in any case, with all that may stand before and after it up to the line's end."""
    word = draw(st.sampled_from(THE_SEVEN))
    upper = draw(st.lists(st.booleans(), min_size=len(word), max_size=len(word)))
    marker = "".join(c.upper() if up else c for c, up in zip(word, upper, strict=True))
    order_mark = draw(st.sampled_from(["", "\ufeff"]))
    above = "".join(draw(st.lists(blank_lines, max_size=4)))
    return f"{order_mark}{above}{draw(blanks)}{marker}{draw(blanks)}{draw(line_ends)}"


def test_a1_the_markers_are_these_seven() -> None:
    assert sorted(THE_SEVEN) == sorted(MARKERS)


@pytest.mark.parametrize("line", THE_SEVEN)
@pytest.mark.parametrize("spelling", [str.lower, str.upper, str.title, str.swapcase])
def test_a1_a_marker_in_any_case_sends_the_rest_to_the_background(
    line: str, spelling: Callable[[str], str]
) -> None:
    assert split(f"{spelling(line)}\nsleep 5") == ("sleep 5", True)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("#bg\nmake\nmake install\n", "make\nmake install\n"),
        ("\n\n  \t\n#bg\nmake", "make"),
        ("   # bg \t\nmake", "make"),
        ("#bg\r\nmake\r\nmake install\r\n", "make\r\nmake install\r\n"),
        ("\r\n\r\n#bg\r\nmake", "make"),
        ("\ufeff#bg\nmake", "make"),
        ("\ufeff\r\n # @Background\r\nmake", "make"),
        ("#bg\n\n\n  make  \n\n", "\n\n  make  \n\n"),
        ("#bg\n#bg\nmake", "#bg\nmake"),
        ("#bg\n\ufeffmake", "\ufeffmake"),
        ("@background\ncat <<E\n# bg\nE\n", "cat <<E\n# bg\nE\n"),
    ],
)
def test_a1_what_follows_the_marker_is_left_exactly_as_it_was(text: str, command: str) -> None:
    assert split(text) == (command, True)


@pytest.mark.parametrize("text", ["#bg", "#bg\n", " #BG ", "\n\n#bg\r\n", "\ufeff@background"])
def test_a1_a_block_with_nothing_but_the_marker_is_empty(text: str) -> None:
    assert split(text) == ("", True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "  \n\t\n",
        "\ufeff",
        "make",
        "#bgcolor\nmake",
        "# background job\nmake",
        "#bg: x\nmake",
        "#bg make",
        "#bg;make",
        "#bg # bg\nmake",
        "#bg\rmake",
        "##bg\nmake",
        "#  bg\nmake",
        "#\tbg\nmake",
        "#! bg\nmake",
        "#!background\nmake",
        "#@background\nmake",
        "@bg\nmake",
        "bg\nmake",
        "background\nmake",
        "# back ground\nmake",
        "make\n#bg",
        "#!/bin/sh\n#bg\nmake",
        "# a comment\n#bg\nmake",
        "\n\ufeff#bg\nmake",
        "\u200b#bg\nmake",
        "＃bg\nmake",
        "#bac\u212around\nmake",
        "#bac\u212aground\nmake",
        "echo '#bg'",
    ],
)
def test_a1_what_is_no_marker_stays_where_it_is(text: str) -> None:
    assert split(text) == (text, False)


@given(marker_lines(), st.text())
def test_a1_the_rest_comes_back_whatever_stands_around_the_marker(line: str, rest: str) -> None:
    assert split(line + rest) == (rest, True)


@given(st.text())
def test_a1_any_text_is_either_whole_or_without_its_first_lines(text: str) -> None:
    command, background = split(text)
    assert text.endswith(command)
    if not background:
        assert command == text
    else:
        taken = text[: len(text) - len(command)]
        assert taken.removeprefix("\ufeff").strip().lower() in MARKERS


@given(st.text(alphabet="#!@ bBgG\n\r\t\ufeff"), st.text(min_size=1))
def test_a1_a_marker_on_a_later_line_is_none(comment: str, rest: str) -> None:
    text = f"x{comment}\n#bg\n{rest}"
    assert split(text) == (text, False)


def test_a1_a_long_text_takes_no_longer_than_it_must() -> None:
    blank_text = "\n" * 1_000_000
    assert split(blank_text + "#bg\n" + "x" * 1_000_000) == ("x" * 1_000_000, True)
    assert split(" " * 5_000_000) == (" " * 5_000_000, False)
    assert split("#bg" * 1_000_000).background is False


def test_a1_the_answer_names_its_parts() -> None:
    answer = markers.split("#bg\nmake")
    assert (answer.command, answer.background) == ("make", True)


def test_a1_the_public_page_is_found_from_the_package_and_loads_little() -> None:
    program = (
        "import sys, backburner; assert backburner.markers.split('#bg\\nx') == ('x', True);"
        "print(*sorted(sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not set(run.stdout.split()) & {"asyncio", "apsw", "pydantic", "typer", "re2", "psutil"}
