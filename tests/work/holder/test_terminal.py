"""`run --pty`: a real terminal, that lives when we die and that nobody can slow down (X2, X3)."""

import os
import re
import signal
from pathlib import Path

import pytest

from backburner.model.errors import LimitReached, UsageError
from backburner.work.holder import frames
from backburner.work.input import InputLine, resize, send, send_eof
from backburner.work.process.condition import Ended
from tests.faults.victims import arguments_of, is_running
from tests.waiting import wait_until
from tests.work.holder.conftest import Held, StartHeld

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


def lines(job: Held) -> list[str]:
    return job.output().decode().replace("\r\n", "\n").splitlines()


def runs(job: Held, program: str) -> bool:
    pids = job.started.tree.members()
    return any(arguments_of(pid)[:1] == [program] for pid in pids)


def test_all_three_streams_are_one_terminal_of_the_size_that_was_told(hold: StartHeld) -> None:
    line = "test -t 0 && test -t 1 && test -t 2 && tty; stty size; echo $TERM; ps -o tty= -p $$"
    job = hold(line, input="pty", size=(40, 120))
    assert job.ended() == Ended(0, by_signal=False)
    name, size, term, controlling = lines(job)
    assert name.startswith("/dev/")
    assert (size, term) == ("40 120", "xterm")
    assert name == f"/dev/{controlling.strip()}"


def test_a_new_size_reaches_the_job(hold: StartHeld) -> None:
    job = hold("trap 'stty size' WINCH; echo up; while :; do sleep 0.02; done", input="pty")
    job.said("up")
    resize(job.folder, 33, 77)
    job.said("33 77")
    with pytest.raises(UsageError, match="cannot have"):
        resize(job.folder, 0, 77)
    with pytest.raises(UsageError):
        resize(job.folder, 70_000, 77)


def test_prompts_are_answered_as_a_person_would(hold: StartHeld) -> None:
    """Also one that reads a password: it asks the terminal itself and shows nothing."""
    ask = "import getpass; print('got', len(getpass.getpass('Password: ')))"
    job = hold(f'read -p "name? " name; echo hi $name; python3 -c "{ask}"', input="pty")
    job.said("name? ")
    send(job.folder, b"bob\n")
    job.said("hi bob")
    job.said("Password: ")
    send(job.folder, b"hush!\n")
    assert job.ended() == Ended(0, by_signal=False)
    assert b"got 5" in job.output()
    assert b"hush" not in job.output()


def test_control_characters_are_those_of_a_terminal(hold: StartHeld) -> None:
    job = hold("trap 'echo interrupted' INT; echo up; cat; echo then; cat; echo over", input="pty")
    job.said("up")
    wait_until(lambda: runs(job, "cat"))  # else the shell hears it before it, and goes on to it
    send(job.folder, b"\x03")
    job.said("interrupted")
    job.said("then")
    send(job.folder, b"unfinished")
    send_eof(job.folder)  # in the middle of a line it takes two
    assert job.ended() == Ended(0, by_signal=False)
    assert b"unfinishedunfinished" in job.output()  # its echo, and cat


def test_more_can_be_sent_after_an_end(hold: StartHeld) -> None:
    job = hold("cat; echo first; cat; echo second", input="pty")
    send_eof(job.folder)
    job.said("first")
    send(job.folder, b"again\n")
    send_eof(job.folder)
    assert job.ended() == Ended(0, by_signal=False)
    assert b"again\r\nagain\r\nsecond" in job.output()


def test_a_line_that_the_terminal_would_cut_is_refused(hold: StartHeld) -> None:
    job = hold("stty -echo; echo up; cat", input="pty")
    job.said("up")
    send(job.folder, b"a" * 4000)
    with pytest.raises(LimitReached, match=r"lines of 4,095 bytes"):
        send(job.folder, b"b" * 200)
    send(job.folder, b"b" * 90 + b"\n" + b"c" * 4000 + b"\n")
    job.said("a" * 4000 + "b" * 90 + "\r\n" + "c" * 4000 + "\r\n")


@pytest.mark.slow
def test_megabytes_go_through_a_terminal_in_both_directions(hold: StartHeld) -> None:
    job = hold("stty raw -echo; echo ready; head -c 3000000 | tr a b", input="pty")
    job.said("ready")
    send(job.folder, b"a" * 3_000_000)
    assert job.ended() == Ended(0, by_signal=False)
    assert job.output().count(b"b") == 3_000_000


@pytest.mark.parametrize("tries", range(3))
def test_nothing_of_the_last_output_is_lost(hold: StartHeld, tries: int) -> None:
    job = hold("seq 1 20000", input="pty")
    assert job.ended() == Ended(0, by_signal=False)
    assert lines(job) == [str(number) for number in range(1, 20001)]


def test_what_a_job_leaves_in_its_terminal_does_not_hold_it(hold: StartHeld) -> None:
    """Its holder is gone at the end of the job, and is never counted as left behind."""
    job = hold("trap '' HUP; sleep 61 & echo done", input="pty")
    holder = job.holder()
    assert job.ended() == Ended(0, by_signal=False)
    assert not is_running(holder)
    assert b"done" in job.output()
    (left,) = job.started.tree.members()
    assert b"sleep" in Path(f"/proc/{left}/cmdline").read_bytes()


def test_a_flood_that_goes_on_after_the_end_does_not_hold_it_either(hold: StartHeld) -> None:
    job = hold("trap '' HUP; yes & read x", input="pty")
    wait_until(lambda: len(job.output()) > 1000)
    send(job.folder, b"\n")
    assert job.ended() == Ended(0, by_signal=False)


def test_a_job_that_closes_its_terminal_for_a_while_has_not_hung_up(hold: StartHeld) -> None:
    job = hold("exec <&- >&- 2>&-; sleep 0.2; echo back >/dev/tty", input="pty")
    assert job.ended() == Ended(0, by_signal=False)
    assert job.output() == b"back\r\n"


def test_x2_when_the_holder_is_killed_the_terminal_is_hung_up(hold: StartHeld) -> None:
    job = hold("trap 'exit 5' TERM; echo up; sleep 62", input="pty")
    job.said("up")
    os.kill(job.holder(), signal.SIGKILL)
    assert job.ended() == Ended(137, by_signal=True)
    wait_until(lambda: not job.started.tree.members())


def test_a_shell_at_its_prompt_leaves_when_it_is_stopped(hold: StartHeld) -> None:
    """It ignores TERM: what ends it is that its terminal is hung up."""
    job = hold("bash", "--norc", "-i", input="pty")
    job.said("$" if os.getuid() else "#")
    for fd in job.started.tree.send(signal.SIGTERM):
        os.close(fd)
    assert job.ended() == Ended(128 + signal.SIGHUP, by_signal=True)


# Who is attached


def attached(job: Held) -> InputLine:
    line = InputLine(job.folder)
    line.attach()
    return line


def shown(line: InputLine, until: bytes) -> bytes:
    """What an attached terminal shows, once this is in it."""
    seen = bytearray()

    def found() -> bool:
        for kind, payload in line.receive():
            if kind in (frames.REPLAY, frames.OUTPUT):
                seen.extend(payload)
        return until in seen

    wait_until(found, message=lambda: f"{until!r} is not in {bytes(seen)!r}")
    return bytes(seen)


def test_who_attaches_sees_what_was_and_what_comes(hold: StartHeld) -> None:
    job = hold("echo before; cat", input="pty")
    job.said("before")
    with attached(job) as one, attached(job) as two:
        assert shown(one, b"before\r\n") == b"before\r\n"
        send(job.folder, b"now\n")
        assert shown(one, b"now\r\nnow\r\n") == b"now\r\nnow\r\n"
        assert shown(two, b"now\r\nnow\r\n") == b"before\r\nnow\r\nnow\r\n"
    send(job.folder, b"later\n")  # who leaves takes nothing along
    job.said("later\r\nlater\r\n")


def test_who_comes_late_sees_the_last_of_much_and_the_screen_it_is_on(hold: StartHeld) -> None:
    job = hold(r"printf '\033[?1049h'; seq 1 100000; cat", input="pty")
    job.said("100000\r\n")
    with attached(job) as line:
        seen = shown(line, b"100000\r\n")
    assert seen.startswith(b"\x1b[?1049h")
    assert 64_000 < len(seen) < 140_000
    first = seen.removeprefix(b"\x1b[?1049h").split(b"\r\n")[0]
    assert re.fullmatch(rb"\d{5}", first), "lines are whole"


def test_the_end_is_told_to_who_is_attached(hold: StartHeld) -> None:
    job = hold("read x; echo bye; exit 3", input="pty")
    with attached(job) as line:
        send(job.folder, b"\n")
        kinds: list[bytes] = []

        def ended() -> bool:
            kinds.extend(kind for kind, _ in line.receive())
            return frames.END in kinds

        wait_until(ended)
    assert job.ended() == Ended(3, by_signal=False)


def test_x3_who_does_not_read_is_dropped_with_a_word_and_the_job_is_not_slowed(
    hold: StartHeld,
) -> None:
    job = hold("seq 1 1000000; echo done; cat", input="pty")
    with attached(job) as idle:
        job.said("done")
        words: list[bytes] = []

        def dropped() -> bool:
            try:
                words.extend(payload for kind, payload in idle.receive() if kind == frames.NO)
            except ConnectionResetError:
                return True
            return False

        wait_until(dropped)
        assert words == [frames.SLOW]
    assert len(job.output()) > 6_000_000
    send_eof(job.folder)
    assert job.ended() == Ended(0, by_signal=False)
