"""`run --pty`, `attach`: at the terminal of a job for a while, which never ends it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from backburner.cli.detachkey import DetachKey
from backburner.model.errors import UsageError
from tests.cli.golden import Golden
from tests.cli.program import Program, Terminal
from tests.faults.victims import processes_with, unique_seconds
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

CTRL_C = "\x03"
CTRL_D = "\x04"
LEAVE = "\x1d"


def state(backburner: Program, id: str) -> str:
    return backburner("show", "--json", id).json["state"]


@pytest.fixture
def shell(backburner: Program) -> Iterator[str]:
    """A task with a shell at its prompt."""
    line = r"PS1='inner\$ ' exec bash --norc -i"
    backburner("run", "--pty", "--id", "shell", "--size", "90x25", "--", line)
    wait_until(lambda: "inner" in backburner("logs", "shell").out)
    yield "shell"
    backburner("stop", "--force", "shell")


def leave(terminal: Terminal) -> int:
    terminal.type(LEAVE)
    terminal.read_to_end()
    return terminal.process.returncode


def test_a_person_comes_leaves_and_comes_back(
    backburner: Program, shell: str, golden: Golden
) -> None:
    with backburner.in_terminal("attach", shell, columns=100, lines=30) as terminal:
        terminal.read_until("inner")
        terminal.type("echo $((6 * 7))\r")
        terminal.read_until("42")
        terminal.type("stty size\r")
        terminal.read_until("30 100")  # the size of this terminal now
        terminal.type(LEAVE)
        shown = terminal.read_to_end()
        assert terminal.process.returncode == 0
        assert terminal.settings() == terminal.before
    golden.check("attach-left", shown.rpartition("\x1b[J")[2])
    assert "Ctrl-] leaves, and it goes on" in shown
    assert state(backburner, shell) == "running"
    with backburner.in_terminal("attach", shell) as terminal:
        terminal.read_until("42")  # what was shown before
        terminal.type("exit 9\r")
        shown = terminal.read_to_end()
        assert terminal.process.returncode == 9
    assert "failed: exit code 9" in shown
    assert "echo $((6 * 7))" in backburner("logs", shell).out


def test_ctrl_c_and_ctrl_d_go_to_the_job(backburner: Program, shell: str) -> None:
    with backburner.in_terminal("attach", shell) as terminal:
        terminal.read_until("inner")
        seconds = unique_seconds()
        terminal.type(f"echo go''ing; sleep {seconds} || echo interru''pted\r")
        terminal.read_until("going")
        # A shell that is just starting it does not pass the key on.
        wait_until(lambda: processes_with(seconds))
        terminal.type(CTRL_C)
        terminal.read_until("^C")
        terminal.type("echo st''ill here\r")
        # At its prompt it reads keys; before that, the end of a line of none would be lost.
        terminal.read_until("still here", then="inner")
        terminal.type(CTRL_D)
        assert "exit" in terminal.read_to_end()
        assert terminal.process.returncode == 0


def test_a_new_size_of_the_window_is_told(backburner: Program) -> None:
    # Its trap is short: what comes while one is carried out, bash forgets.
    line = "trap told=1 WINCH; echo up; while :; do sleep 0.05; "
    line += "if [ $told ]; then told=; stty size; fi; done"
    backburner("run", "--pty", "--id", "sized", "--", line)
    wait_until(lambda: "up" in backburner("logs", "sized").out)  # from now on it hears of it
    with backburner.in_terminal("attach", "sized") as terminal:
        terminal.read_until("30 100")
        terminal.resize(columns=72, lines=18)
        terminal.read_until("18 72")
        leave(terminal)
    backburner("stop", "--force", "sized")


def test_several_are_attached_at_once_and_see_the_same(backburner: Program, shell: str) -> None:
    with (
        backburner.in_terminal("attach", shell) as one,
        backburner.in_terminal("attach", "--read-only", shell, columns=40) as two,
    ):
        one.read_until("inner")
        two.read_until("inner")
        one.type("echo to''gether; stty size\r")
        one.read_until("together")
        two.read_until("together")
        two.read_until("30 100")  # who only looks does not change the size
        two.type("echo not''hing\r")
        one.type("echo a''fter\r")
        assert "nothing" not in two.read_until("after")
        two.type(CTRL_C)  # leaves: it is not for the job
        assert "left alone" in two.read_to_end()
        assert two.process.returncode == 0
        one.type("echo go''es on\r")
        one.read_until("goes on")
        assert leave(one) == 0
    assert state(backburner, shell) == "running"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_sends_away_and_leaves_terminal_and_job_alone(
    backburner: Program, shell: str, number: signal.Signals
) -> None:
    with backburner.in_terminal("attach", shell) as terminal:
        terminal.read_until("inner")
        assert terminal.settings() != terminal.before
        terminal.process.send_signal(number)
        assert "left alone: shell goes on" in terminal.read_to_end()
        assert terminal.settings() == terminal.before
        assert terminal.process.returncode == 130
    assert state(backburner, shell) == "running"


def test_closing_the_window_leaves_the_job_alone(backburner: Program, shell: str) -> None:
    with backburner.in_terminal("attach", shell) as terminal:
        terminal.read_until("inner")
        terminal.close()
    assert state(backburner, shell) == "running"


def test_what_a_program_switched_on_is_taken_back(backburner: Program) -> None:
    """The other screen, mouse reports, a hidden cursor: the shell that comes after has none."""
    line = r"printf '\033[?1049h\033[?25l\033[?1000h drawn'; cat"
    backburner("run", "--pty", "--id", "full", "--", line)
    with backburner.in_terminal("attach", "full") as terminal:
        terminal.read_until("drawn")
        terminal.type(LEAVE)
        end = terminal.read_to_end().partition("drawn")[2]
    assert "\x1b[?1049l" in end
    assert "\x1b[?25h" in end
    assert "\x1b[?1000l" in end
    backburner("stop", "--force", "full")


def test_questions_that_were_answered_are_not_asked_again(backburner: Program) -> None:
    line = r"printf 'a\033[6nb\033[cc\033]11;?\007d\033P+q544e\033\\e\033[?1049$pf\n'; cat"
    backburner("run", "--pty", "--id", "asks", "--", line)
    wait_until(lambda: "f" in backburner("logs", "asks").out)
    with backburner.in_terminal("attach", "asks") as terminal:
        terminal.read_until("abcdef")
        leave(terminal)
    backburner("stop", "--force", "asks")


def test_x3_who_reads_more_slowly_than_the_job_writes_goes_on_with_the_newest(
    backburner: Program, shell: str
) -> None:
    """The job does not wait for a terminal, and nobody is thrown out for having a slow one."""
    with backburner.in_terminal("attach", shell) as terminal:
        terminal.read_until("inner")
        terminal.type("seq 1 1000000; echo a''ll\r")
        wait_until(lambda: backburner("logs", "-n", "3", shell).out.count("all\n"))
        terminal.read_until("output was skipped here")
        terminal.type("echo al''ive\r")
        terminal.read_until("alive")
        assert leave(terminal) == 0
    assert backburner("show", "--json", shell).json["output"]["bytes"] > 6_000_000


def test_another_key_leaves(backburner: Program) -> None:
    backburner("run", "--pty", "--id", "cat", "--", "cat -v")
    with backburner.in_terminal("attach", "--detach-key", "^q", "cat") as terminal:
        terminal.read_until("Ctrl-Q leaves")
        terminal.type(f"one{LEAVE}\r")
        terminal.read_until("one^]")
        terminal.type("\x1b[113;5u")  # as a terminal tells it that tells all keys apart
        assert "left alone" in terminal.read_to_end()
    backburner("stop", "--force", "cat")


def test_screen_programs_work(backburner: Program, tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("".join(f"line {n}\n" for n in range(1, 500)))
    # Of the size of the terminal: a key that comes while it draws anew for another is lost to it.
    size = ("--size", "100x10")
    backburner("run", "--pty", *size, "--id", "less", "--", "less", str(tmp_path / "numbers"))
    with backburner.in_terminal("attach", "less", lines=10) as terminal:
        terminal.read_until("line 8")
        terminal.type("G")
        terminal.read_until("line 499")
        leave(terminal)
    with backburner.in_terminal("attach", "less", lines=10) as terminal:
        terminal.read_until("line 499")
        terminal.type("q")
        terminal.read_to_end()
        assert terminal.process.returncode == 0


def test_a_new_attempt_has_a_new_terminal_and_who_is_attached_goes_along(
    backburner: Program, tmp_path: Path
) -> None:
    line = f"echo attempt $(wc -l <{tmp_path}/runs); echo x >>{tmp_path}/runs; read x; exit $x"
    (tmp_path / "runs").touch()
    backburner("run", "--pty", "--id", "again", "--retries", "1", "--", line)
    with backburner.in_terminal("attach", "again") as terminal:
        terminal.read_until("attempt 0")
        terminal.type("3\r")
        terminal.read_until("attempt 1")
        terminal.type("0\r")
        terminal.read_to_end()
        assert terminal.process.returncode == 0


def test_show_says_how_to_give_it_input(backburner: Program) -> None:
    backburner("run", "--pty", "--id", "pty", "--", "cat")
    backburner("run", "--stdin", "--id", "pipe", "--", "cat")
    assert "input" in backburner("show", "pty").out
    assert "a terminal: backburner attach pty" in backburner("show", "pty").out
    assert "backburner send pipe TEXT, then --eof" in backburner("show", "pipe").out
    assert backburner("send", "pty", "typed").code == 0
    wait_until(lambda: backburner("logs", "pty").out == "typed\ntyped\n")
    assert backburner("send", "--eof", "pty").code == 0
    assert backburner("wait", "pty").code == 0
    assert "backburner attach" not in backburner("show", "pty").out
    assert backburner("send", "pipe", "sent").code == 0
    assert backburner("send", "--eof", "pipe").code == 0
    assert backburner("wait", "pipe").code == 0
    assert backburner("logs", "pipe").out == "sent\n"


def sleeping(backburner: Program, id: str) -> list[int]:
    processes = backburner("show", "--json", id).json["processes"]
    return [each["pid"] for each in processes if each["command"] == "sleep 3600"]


def test_it_waits_for_the_end_of_a_killed_job(backburner: Program, home: Path) -> None:
    backburner("run", "--pty", "--id", "dies", "--", "echo up; exec sleep 3600")
    with backburner.in_terminal("attach", "dies") as terminal:
        terminal.read_until("up")
        (sleep,) = wait_until(lambda: sleeping(backburner, "dies"))
        os.kill(sleep, signal.SIGKILL)
        assert "SIGKILL" in terminal.read_to_end()
        assert terminal.process.returncode == 1


def test_mistakes_are_told_with_what_to_do(backburner: Program, golden: Golden) -> None:
    backburner("run", "--id", "plain", "--", "sleep 3600")
    backburner("run", "--stdin", "--id", "pipe", "--", "cat")
    backburner("run", "--pty", "--id", "pty", "--", "cat")
    backburner("run", "--pty", "--id", "over", "--wait", "--", "true")
    told: list[str] = []
    for words in (
        ["attach", "nobody"],
        ["attach", "plain"],
        ["attach", "pipe"],
        ["attach", "over"],
        ["attach", "pty"],
        ["attach", "--detach-key", "ctrl-m", "pty"],
        ["attach", "--detach-key", "x", "pty"],
        ["run", "--stdin", "--pty", "--", "true"],
        ["run", "--pty", "--separate-stderr", "--", "true"],
        ["run", "--pty", "--size", "huge", "--", "true"],
        ["run", "--pty", "--size", "0x24", "--", "true"],
        ["run", "--size", "80x24", "--", "true"],
    ):
        done = backburner(*words)
        assert done.out == ""
        told.append(f"$ backburner {' '.join(words)}\n{done.err}({done.code})\n")
    golden.check("attach-mistakes", "\n".join(told))
    backburner("stop", "--force", "plain", "pipe", "pty")


@pytest.mark.parametrize(
    ("text", "name", "byte"),
    [
        ("ctrl-]", "Ctrl-]", 0x1D),
        ("^A", "Ctrl-A", 1),
        ("C-q", "Ctrl-Q", 17),
        ("Ctrl+\\", "Ctrl-\\", 28),
    ],
)
def test_a_key_is_named_as_people_name_it(text: str, name: str, byte: int) -> None:
    key = DetachKey.parse(text)
    assert str(key) == name
    assert key.split(b"ab" + bytes([byte]) + b"c") == (b"ab", True)
    assert key.split(b"abc") == (b"abc", False)


@pytest.mark.parametrize(
    "text", ["", "ctrl-", "x", "ctrl-m", "^[", "ctrl-i", "ctrl-ä", "f1", "^ab"]
)
def test_a_key_that_cannot_be_spared_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be used"):
        DetachKey.parse(text)
