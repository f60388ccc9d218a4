"""Patterns of strangers: what is refused, and how long the rest can take."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model.errors import UsageError
from backburner.work.log.lines import PIECE
from backburner.work.log.pattern import MOST_MEMORY, LinePattern, check_pattern, compile_pattern

HOSTILE = [
    r"(a+)+$",
    r"(x+x+)+y",
    r"(?:a?){500}(?:a{500})",
    r"((a{1,100}){1,10})\b.{1,50}(b|c.{100})$",
    r"(.*.*.*.*)*=.*[^a]{200}.{300}z",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_x4_a_hostile_pattern_takes_no_longer_than_a_look_may(pattern: str) -> None:
    check_pattern(pattern)
    matches = compile_pattern(pattern, most_memory=MOST_MEMORY)
    began = time.process_time()
    matches("a" * PIECE)
    assert time.process_time() - began < 2  # 0.06 s as a rule


@pytest.mark.parametrize(
    "pattern",
    ["(", "[", "*", r"\1", r"(?<=a)b", r"(?=a)", "a{2000}", r"\pL{300}\pL{300}", "\udcff"],
)
def test_x4_what_does_not_compile_is_a_usage_error(pattern: str) -> None:
    with pytest.raises(UsageError, match="is no pattern: ") as caught:
        check_pattern(pattern)
    assert "RE2" in caught.value.remedy


def test_x4_others_go_on_while_a_pattern_is_matched() -> None:
    """The keeper's loop runs while a thread of it matches."""
    matches = compile_pattern(HOSTILE[3], most_memory=MOST_MEMORY)
    thread = threading.Thread(target=matches, args=("a" * 20 * PIECE,))
    turns = 0
    thread.start()
    while thread.is_alive():
        turns += 1
        thread.join(0.01)
    assert turns > 3


def test_x4_a_pattern_is_found_anywhere_in_a_line() -> None:
    matches = compile_pattern("listening on .*:[0-9]+$")
    assert matches("server: listening on 127.0.0.1:80")
    assert not matches("listening on 127.0.0.1:80 soon")


@given(
    lines=st.lists(st.text("ab \t.", max_size=6), min_size=1, max_size=6),
    pattern=st.lists(
        st.sampled_from(
            [
                *("^", "$", "a", "b", " ", ".", "[^a]", r"\b", r"\s", r"\S", "*", "?", "|"),
                *("(?i)", "(?s).", "(?m)^", r"\B", "(a|b$)", "(^a|b)", "{2}"),
            ]
        ),
        min_size=1,
        max_size=6,
    ).map("".join),
)
def test_x4_several_lines_are_only_passed_over_where_none_of_them_matches(
    lines: list[str], pattern: str
) -> None:
    try:
        compiled = LinePattern.compiled(pattern)
    except ValueError:
        return
    if any(compiled.matches(line) for line in lines) and compiled.anywhere is not None:
        assert compiled.anywhere("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize("pattern", [r"\Aup\z", r"(?-m:^up$)", r"\Qup", r"(?i-s)up"])
def test_x4_a_pattern_that_tells_lines_apart_is_asked_of_each(pattern: str) -> None:
    compiled = LinePattern.compiled(pattern)
    assert compiled.anywhere is None
    assert compiled.matches("up")
