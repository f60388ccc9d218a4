"""Progress as a bar: exact, bounded, in `ls` and `show`, and only where there is any."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.cli.bars import bar, fraction, percent_and_bar
from backburner.model.task import Progress
from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.faults.record import set_all_back
from tests.waiting import wait_until

BACKBURNER = f"{sys.executable} -m backburner.cli"
numbers = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize(
    ("part", "drawn"),
    [(0, "░░░░"), (0.5, "██░░"), (0.54, "██▏░"), (0.99, "███▉"), (0.9999, "███▉"), (1, "████")],
)
def test_a_bar_is_full_only_when_all_is_done(part: float, drawn: str) -> None:
    assert bar(part, 4) == drawn


@given(numbers, st.none() | numbers, st.integers(0, 40))
def test_whatever_a_job_reports_the_bar_has_its_width(
    current: float, total: float | None, columns: int
) -> None:
    part = fraction(Progress(current, total))
    if part is not None:
        assert 0 <= part <= 1
        assert len(bar(part, columns)) == columns
        assert len(percent_and_bar(Progress(current, total), columns)) == columns + 6


@pytest.mark.parametrize("given", [None, Progress(3), Progress(3, 0)])
def test_without_a_total_there_is_none(given: Progress | None) -> None:
    assert fraction(given) is None
    assert percent_and_bar(given, 10) == ""


@pytest.mark.slow
def test_bars_are_shown_where_progress_is_known(
    backburner: Program, golden: Golden, home: Path
) -> None:
    """X5, X8."""
    backburner("run", "--id", "ended", "--title", "ended", "--cwd", "/nowhere", "--", "true")
    assert "PROGRESS" not in backburner("ls").out
    backburner(
        "run", "--id", "copies", "--title", "copies", "--cwd", "/",
        "--", f"{BACKBURNER} progress 5 8 --unit files --label main.c; sleep 60",
    )  # fmt: skip
    wait_until(lambda: "PROGRESS" in backburner("ls").out)
    golden.check("ls-progress", backburner("ls").out)
    set_all_back(home, 10)  # ages are as wide from now on, and what is cut depends on that
    with backburner.in_terminal("ls", columns=60) as terminal:
        golden.check("ls-progress-terminal", terminal.read_to_end())
    with backburner.in_terminal("ls", "--watch", columns=100, lines=10) as terminal:
        terminal.read_until("62 % ██████▎░░░")
        assert terminal.interrupt() == 130
    shown = backburner("show", "copies").out
    assert "████████████▌░░░░░░░ 62% (5/8 files) main.c\n" in shown
    backburner("stop", "copies")
    assert "PROGRESS" not in backburner("ls").out
