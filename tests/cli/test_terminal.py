"""Colours only where they are wanted."""

import pytest

from tests.cli.program import Program

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@pytest.fixture
def one_task(backburner: Program) -> None:
    backburner("run", "--cwd", "/nowhere", "--", "true")


def listed(backburner: Program) -> str:
    with backburner.in_terminal("ls") as terminal:
        return terminal.read_to_end()


def test_a_terminal_gets_colours(one_task: None, backburner: Program) -> None:
    assert "\x1b[31mfailed\x1b[0m" in listed(backburner)


def test_a_pipe_gets_none(one_task: None, backburner: Program) -> None:
    assert "\x1b" not in backburner("ls").out


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_refused(
    one_task: None,
    backburner: Program,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
) -> None:
    monkeypatch.setenv(name, value)
    assert "\x1b" not in listed(backburner)


def test_an_empty_no_color_does_not_count(
    one_task: None, backburner: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert "\x1b[31mfailed\x1b[0m" in listed(backburner)
