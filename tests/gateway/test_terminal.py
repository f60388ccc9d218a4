"""`backburner gateway terminal` in a real terminal: B3, B8, and what makes it pleasant."""

from pathlib import Path

import pytest

from tests.cli.program import Program, Terminal
from tests.nursery import Nursery
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

CTRL_C, CTRL_D, ENTER, TAB, UP = "\x03", "\x04", "\r", "\t", "\x1b[A"
PROMPT = "›"


@pytest.fixture
def backburner(home: Path, nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The real program, in a terminal that does not say where its cursor is."""
    monkeypatch.setenv("PROMPT_TOOLKIT_NO_CPR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    return Program(nursery)


def say(terminal: Terminal, text: str) -> None:
    terminal.type(text + ENTER)


def leave(terminal: Terminal, after: str) -> int:
    """Ctrl-D, once the line to type in is there again: a key before that may be lost to it."""
    terminal.read_words(after, then=PROMPT)
    terminal.type(CTRL_D)
    terminal.read_to_end()
    return terminal.process.returncode


def test_b3_a_chat_from_the_greeting_to_the_end(backburner: Program, home: Path) -> None:
    backburner("run", "--id", "early", "--title", "an early bird", "--", "sleep 600")
    with backburner.in_terminal("gateway", "terminal", "--agent", "echo") as terminal:
        terminal.read_words("an early bird", then=PROMPT)  # what runs is shown at once
        say(terminal, "/bg count to three")
        terminal.read_words("Task ID:", then="bg_")
        terminal.read_words("Background task complete", then=PROMPT)
        say(terminal, "good morning")
        terminal.read_words("The person says now", then=PROMPT)  # the agent repeats all it is told
        say(terminal, "stop the job")
        assert leave(terminal, "⏹ early") == 0
        assert terminal.settings() == terminal.before
    assert (home / "gateway" / "history-test").stat().st_mode & 0o777 == 0o600


def test_b8_commands_are_completed_after_a_slash_and_not_before(backburner: Program) -> None:
    backburner("run", "--id", "napping", "--", "sleep 600")
    with backburner.in_terminal("gateway", "terminal") as terminal:
        terminal.read_words("sleep 600", then=PROMPT)
        terminal.type("ba" + TAB)
        terminal.read_words("ba")
        terminal.type(CTRL_C)
        terminal.type("/ba")
        shown = terminal.read_words("Run a prompt in the background")  # the menu
        assert shown.count("Run a prompt in the background") == 1
        terminal.type(TAB)
        terminal.read_words("/background")
        terminal.type(CTRL_C)
        terminal.type("/stop na")
        terminal.read_words("/stop na", then="sleep 600")  # the title beside the id, in the menu
        terminal.type(TAB + ENTER)
        assert leave(terminal, "stopped") == 0


def test_output_comes_above_the_line_that_is_being_typed(backburner: Program, home: Path) -> None:
    with backburner.in_terminal("gateway", "terminal", "--agent", "echo") as terminal:
        terminal.read_words("No task is running", then=PROMPT)
        terminal.type("/bg half of ")
        terminal.read_words("half of")
        backburner("run", "--title", "the other one", "--", "true")
        terminal.read_words("Background task complete", then="half of")  # drawn again below
        terminal.resize(columns=40, lines=20)
        terminal.type("a sentence" + ENTER)
        terminal.read_words("Background task complete", then="half of a sentence")
        assert leave(terminal, "half of a sentence") == 0


def test_what_was_typed_is_there_the_next_time_and_ctrl_c_is_clean(
    backburner: Program, home: Path
) -> None:
    with backburner.in_terminal("gateway", "terminal") as terminal:
        terminal.read_words("No task is running", then=PROMPT)
        say(terminal, "/help schedule")
        terminal.read_words("Usage: /schedule", then=PROMPT)
        terminal.type("never mind")
        terminal.read_words("never mind")
        terminal.type(CTRL_C)  # clears the line
        wait_until(lambda: terminal.process.poll() is None)
        say(terminal, "/tasks")
        terminal.read_words("There are no background tasks", then=PROMPT)
        terminal.type(CTRL_C)  # on an empty line, it leaves
        shown = terminal.read_to_end()
        assert terminal.process.returncode == 130
        assert "tasks go on" in shown
        assert "Traceback" not in shown
        assert terminal.settings() == terminal.before
    with backburner.in_terminal("gateway", "terminal") as terminal:
        terminal.read_words("No task is running", then=PROMPT)
        terminal.type(UP + UP)
        terminal.read_words("/help schedule")
        terminal.type(CTRL_C)
        assert leave(terminal, "/help schedule") == 0


def test_a_second_terminal_of_the_same_session_is_refused(backburner: Program) -> None:
    with backburner.in_terminal("gateway", "terminal") as first:
        first.read_words("No task is running", then=PROMPT)
        with backburner.in_terminal("gateway", "terminal") as second:
            shown = second.read_to_end()
            assert second.process.returncode == 2
        assert "running already" in shown
        assert "another --session" in shown
        with backburner.in_terminal("gateway", "terminal", "--session", "other") as second:
            assert leave(second, "No task") == 0
        assert leave(first, "No task") == 0


def test_without_a_terminal_it_says_so(backburner: Program) -> None:
    done = backburner("gateway", "terminal")
    assert (done.code, done.out) == (2, "")
    assert "this needs a terminal" in done.err
