"""`backburner top` as a program in a real terminal: how it begins, how it ends, what it leaves."""

import signal
import termios
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.waiting import wait_until

OTHER_SCREEN = "\x1b[?1049h"
FIRST_SCREEN = "\x1b[?1049l"


@pytest.fixture
def job(backburner: Program) -> str:
    task = backburner("run", "--title", "a job", "--", "echo its output; sleep 60").id
    wait_until(lambda: backburner("ls", "-q", "--state", "running").out)
    return task


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "status"), [("q", 0), ("\x03", 130)])
def test_leaving_leaves_every_job_alone(
    backburner: Program, job: str, keys: str, status: int
) -> None:
    with backburner.in_terminal("top", columns=80, lines=24) as terminal:
        terminal.read_until("its output")
        assert terminal.settings() != terminal.before
        terminal.type(keys)
        shown = terminal.read_to_end()
        assert terminal.process.returncode == status
        assert terminal.settings() == terminal.before
    assert OTHER_SCREEN in shown
    assert shown.rindex(FIRST_SCREEN) > shown.index("its output")
    assert "Traceback" not in shown
    assert backburner("ls", "-q", "--state", "running").out.strip() == job
    backburner("stop", "--all")


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("arguments", [["top"], ["ls", "--watch"]])
def test_whoever_ends_it_gets_the_terminal_back(
    backburner: Program, job: str, arguments: list[str], ending: signal.Signals
) -> None:
    with backburner.in_terminal(*arguments) as terminal:
        terminal.read_until("a job")
        terminal.process.send_signal(ending)
        shown = terminal.read_to_end()
        assert terminal.process.returncode == 143
        assert terminal.settings()[3] & termios.ECHO
        assert terminal.settings()[3] == terminal.before[3] | termios.ECHO
    assert FIRST_SCREEN in shown
    assert "\x1b[?25h" in shown  # the cursor is seen
    assert "Traceback" not in shown
    backburner("stop", "--all")


@pytest.mark.slow
def test_it_ends_when_the_window_is_closed(backburner: Program, job: str) -> None:
    with backburner.in_terminal("top") as terminal:
        terminal.read_until("its output")
        terminal.close()  # waits for the end
    assert backburner("ls", "-q", "--state", "running").out.strip() == job
    backburner("stop", "--all")


@pytest.mark.slow
def test_a_new_size_is_taken_up(backburner: Program, job: str) -> None:
    with backburner.in_terminal("top", columns=80, lines=24) as terminal:
        terminal.read_until("its output")
        terminal.resize(columns=30, lines=6)
        terminal.resize(columns=120, lines=40)
        terminal.read_until("LAST LINE")
        terminal.type("q")
        assert "Traceback" not in terminal.read_to_end()
    backburner("stop", "--all")


def test_without_a_terminal_it_says_what_works(backburner: Program) -> None:
    refused = backburner("top")
    assert (refused.code, refused.out) == (2, "")
    assert "top needs a terminal" in refused.err
    assert "ls --watch --json" in refused.err
    assert "top is for people" in backburner("top", "--json").err


def test_without_textual_it_says_what_to_install(
    backburner: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "textual.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'textual'\", name='textual')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with backburner.in_terminal("top") as terminal:
        shown = terminal.read_to_end()
        assert terminal.process.returncode == 2
    assert "top needs textual, which is not installed" in shown
    assert 'pip install "backburner[top]"' in shown
