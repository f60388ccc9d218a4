"""Commands as channels: what they get, and that none of them can hang, flood or escape us."""

import json
import os
import time
from pathlib import Path

import pytest

from backburner.model.home import Home
from backburner.model.signals import SignalKind
from backburner.work.channels.outcome import Delivered, Failed, Letter, Outcome
from backburner.work.channels.program import Run, command_program, desktop_program
from tests.faults.victims import kill, processes_with, unique_seconds
from tests.waiting import wait_until
from tests.work.channels.letters import a_letter

BASE = {"PATH": os.environ["PATH"], "HOME": "/"}


def run_of(home: Path, line: str, letter: Letter | None = None, *, limit_s: float = 20) -> Run:
    letter = letter or a_letter()
    place = Home(home)
    return Run(command_program(line, letter, place, BASE), letter, place, limit_s=limit_s)


def deliver(home: Path, line: str, letter: Letter | None = None, *, limit_s: float = 20) -> Outcome:
    run = run_of(home, line, letter, limit_s=limit_s)
    return run.start() or run.carry_out()


def reason(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed), outcome
    return outcome.reason


def test_x1_it_gets_the_signal_and_says_that_it_has_it(tmp_path: Path) -> None:
    line = f"cat >{tmp_path}/in; env >{tmp_path}/env"
    text = "$(touch /tmp/x) `id` ' \" ; rm -rf \n two (bg_1) finished"
    assert deliver(tmp_path, line, a_letter(text)) == Delivered()
    document = json.loads((tmp_path / "in").read_text())
    assert (document["key"], document["task"]) == ("bg_1:end@hook", "bg_1")
    assert document["text"] == text
    environment = (tmp_path / "env").read_text()
    for expected in (
        "BACKBURNER_SIGNAL_KIND=completed\n",
        "BACKBURNER_SIGNAL_TASK=bg_1\n",
        "BACKBURNER_SIGNAL_KEY=bg_1:end@hook\n",
        f"BACKBURNER_SIGNAL_TEXT={text}\n",
        "BACKBURNER_SESSION=chat\n",
        f"BACKBURNER_HOME={tmp_path}\n",
    ):
        assert expected in environment
    # It would be taken for a process of the job, counted and ended with it.
    assert "BACKBURNER_TASK_ID" not in environment


@pytest.mark.parametrize("text", ["a\0b", "x" * 1_000_000, "\udcff"])
def test_no_text_keeps_it_from_being_told(tmp_path: Path, text: str) -> None:
    assert deliver(tmp_path, "cat >/dev/null", a_letter(text)) == Delivered()


def test_one_that_does_not_read_is_no_trouble(tmp_path: Path) -> None:
    assert deliver(tmp_path, "exec <&-; true", a_letter(data={"x": "y" * 500_000})) == Delivered()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("exit 3", "exit code 3"),
        ("echo first; echo; echo '  last  ' >&2; echo; exit 1", "exit code 1: last"),
        ("kill -9 $$", "killed by signal 9"),
        ("echo 'token=abc123 no'; exit 1", "exit code 1: token=[redacted] no"),
        ("printf 'Authorization: Bearer x.y'; exit 1", "exit code 1: Authorization: [redacted]"),
        ("printf '\\033[31mred\\000\\377'; exit 1", "exit code 1: \ufffd[31mred\ufffd\ufffd"),
        ("no-such-program-here", None),
    ],
)
def test_a_failure_has_its_code_and_its_last_line(
    tmp_path: Path, line: str, said: str | None
) -> None:
    found = reason(deliver(tmp_path, line))
    assert found == said if said is not None else "exit code 127: " in found


def test_what_cannot_start_says_so(tmp_path: Path) -> None:
    place, letter = Home(tmp_path), a_letter()
    program = desktop_program("", letter, place, BASE)
    nothing = Run(type(program)(["/no/such/program"], {}, "/"), letter, place, limit_s=5).start()
    assert nothing is not None
    assert "could not be started: No such file" in reason(nothing)


def test_one_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    """X2: forks, new sessions, a cleared environment and a deaf ear are no way out."""
    seconds = unique_seconds()
    line = (
        f"trap '' TERM; sleep {seconds} & setsid sleep {seconds} & "
        f"env -i setsid /bin/sh -c '(sleep {seconds} &)' & sleep {seconds}"
    )
    began = time.monotonic()
    said = reason(deliver(tmp_path, line, limit_s=0.7))
    assert said == "it took longer than 0.7 s, and was ended"
    assert time.monotonic() - began < 60
    wait_until(lambda: not processes_with(seconds))


def test_what_one_leaves_running_on_purpose_goes_on(tmp_path: Path) -> None:
    seconds = unique_seconds()
    assert deliver(tmp_path, f"sleep {seconds} &") == Delivered()
    (left,) = wait_until(lambda: processes_with(seconds))
    kill(left)


def test_what_an_earlier_try_left_is_ended_before_the_next(tmp_path: Path) -> None:
    """Its keeper was killed, so nobody has ended it; and two at once would be one too many."""
    seconds = unique_seconds()
    first = run_of(tmp_path, f"sleep {seconds}")
    assert first.start() is None
    other = run_of(tmp_path, f"sleep {seconds}", a_letter(key="bg_2:end@hook"))
    assert other.start() is None
    wait_until(lambda: len(processes_with(seconds)) == 2)
    run_of(tmp_path, "true", a_letter(tries=2)).end()
    assert isinstance(first.carry_out(), Failed)
    assert len(processes_with(seconds)) == 1, "that of another delivery is left alone"
    other.end()
    assert isinstance(other.carry_out(), Failed)


@pytest.mark.slow
def test_x3_a_flood_costs_little_and_ends(tmp_path: Path) -> None:
    before = os.times()
    assert "took longer" in reason(deliver(tmp_path, "yes", limit_s=1.5))
    after = os.times()
    assert (after.user + after.system) - (before.user + before.system) < 0.7
    assert "exit code 1: end" in reason(
        deliver(tmp_path, "head -c 3000000 /dev/zero; echo; echo end; exit 1")
    )
    long = reason(
        deliver(tmp_path, "printf 'secret='; head -c 9000 /dev/zero | tr '\\0' x; exit 1")
    )
    assert long == "exit code 1", "the beginning of the line is lost, so it is not shown"


def test_a_notification_is_one_argument_and_no_markup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "notify-send"
    program.write_text(
        f'#!/bin/sh\nprintf "%s|" "$@" >{tmp_path}/shown\n'
        f'echo "$DBUS_SESSION_BUS_ADDRESS" >{tmp_path}/bus\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    letter = a_letter("--help <b>&(bg_1)</b> failed", kind=SignalKind.FAILED)
    place = Home(tmp_path)
    run = Run(desktop_program("unix:path=/b", letter, place, BASE), letter, place, limit_s=20)
    assert (run.start() or run.carry_out()) == Delivered()
    assert (tmp_path / "shown").read_text() == (
        "--app-name=Backburner|--urgency=critical|--|Task failed|"
        "--help &lt;b&gt;&amp;(bg_1)&lt;/b&gt; failed|"
    )
    assert (tmp_path / "bus").read_text() == "unix:path=/b\n"
