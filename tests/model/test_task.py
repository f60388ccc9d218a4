"""The task record: the facts that are computed from it, and titles made from long texts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model.states import Kind, State
from backburner.model.task import Place, Task, preview

TASK = Task(
    seq=1, id="bg_1", owner="ada", session="chat", kind=Kind.SHELL, title="tests", spec={},
    state=State.QUEUED, attempt=1, created_at=100,
)  # fmt: skip


def test_run_time_is_counted_from_the_start_to_the_end_or_to_now() -> None:
    assert TASK.elapsed_us(500) == 0
    started = replace(TASK, started_at=200)
    assert started.elapsed_us(500) == 300
    assert replace(started, finished_at=250).elapsed_us(500) == 50


def test_a_clock_that_was_set_back_makes_no_negative_run_time() -> None:
    assert replace(TASK, started_at=200).elapsed_us(100) == 0


def test_the_pid_is_that_of_the_place() -> None:
    assert TASK.pid is None
    assert replace(TASK, place=Place("boot", 0)).pid is None
    assert replace(TASK, place=Place("boot", 0, 4711)).pid == 4711


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("two\nlines\tand  blanks", "two lines and blanks"),
        ("x" * 58 + " yz more", "x" * 58 + "…"),
        ("  \n", ""),
    ],
)
def test_b2_a_preview_is_one_line_cut_at_60_characters_with_an_ellipsis(
    text: str, shown: str
) -> None:
    assert preview(text) == shown


@given(st.text(), st.integers(1, 80))
def test_b2_a_preview_is_never_longer_than_its_limit_and_says_when_it_was_cut(
    text: str, limit: int
) -> None:
    shown = preview(text, limit)
    whole = " ".join(text.split())
    assert len(shown) <= limit
    assert len(shown.splitlines()) <= 1
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))
