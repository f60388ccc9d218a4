"""`run --stdin`: what is sent is read, in order and whole, until its end is sent."""

import hashlib
import os
import re
import signal
import threading
from pathlib import Path

import pytest

from backburner.model.errors import InputNotYet, InputRefused, LimitReached
from backburner.model.home import AttemptFolder
from backburner.work.input import give, resize, send, send_eof
from backburner.work.process.condition import Ended, Vanished, inspect
from backburner.work.process.mark import mark_for
from backburner.work.process.wrapper import Launch, start
from tests.faults.victims import is_running
from tests.waiting import wait_until
from tests.work.holder.conftest import StartHeld
from tests.work.process.conftest import StartWrapper

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

KILOBYTE = 1024


def test_what_is_sent_is_read_until_the_end_is_sent(hold: StartHeld) -> None:
    job = hold("cat")
    send(job.folder, b"one\n")
    job.said("one\n")
    send(job.folder, b"two\n")
    send_eof(job.folder)
    assert job.ended() == Ended(0, by_signal=False)
    assert job.output() == b"one\ntwo\n"


@pytest.mark.parametrize(
    ("command", "sent", "output"),
    [
        (["python3", "-i", "-q"], b"print(6 * 7)\n", b"42\n"),
        (["bash"], b"read x; echo got $x\nit\n", b"got it\n"),
        (["sh", "-c", "read a; read b; echo $b$a; cat"], b"1\n2\n", b"21\n"),
        (["sh", "-c", "cat /dev/stdin"], b"by its name", b"by its name"),
        (["wc", "-c"], b"\0\xff\x04\x03" * 10, b"40\n"),
    ],
)
def test_programs_that_read_get_it(
    hold: StartHeld, command: list[str], sent: bytes, output: bytes
) -> None:
    job = hold(*command)
    send(job.folder, sent)
    send_eof(job.folder)
    assert job.ended() == Ended(0, by_signal=False)
    assert output in job.output()


def test_the_end_can_be_sent_before_the_job_reads(hold: StartHeld, tmp_path: Path) -> None:
    job = hold(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; cat; echo over")
    send(job.folder, b"early\n")
    send_eof(job.folder)
    send_eof(job.folder)  # again is no error
    with pytest.raises(InputRefused, match="was closed before"):
        send(job.folder, b"late\n")
    (tmp_path / "go").touch()
    assert job.ended() == Ended(0, by_signal=False)
    assert job.output() == b"early\nover\n"


def test_the_end_alone_is_an_empty_input(hold: StartHeld) -> None:
    job = hold("cat; echo over")
    send_eof(job.folder)
    job.ended()
    assert job.output() == b"over\n"


@pytest.mark.slow
def test_ten_megabytes_go_through_at_the_speed_of_the_job(hold: StartHeld) -> None:
    """The holder keeps a megabyte at most; the sender waits for the job."""
    data = os.urandom(10 * KILOBYTE * KILOBYTE)
    job = hold("python3", "-c", SLOW_READER)
    send(job.folder, data)
    send_eof(job.folder)
    assert job.ended() == Ended(0, by_signal=False)
    assert job.output().decode().strip() == hashlib.sha256(data).hexdigest()


SLOW_READER = """
import hashlib, sys, time
digest = hashlib.sha256()
while part := sys.stdin.buffer.read1(200_000):
    digest.update(part)
    time.sleep(0.002)
print(digest.hexdigest())
"""


def test_what_was_refused_is_not_taken_and_what_was_taken_is_read(
    hold: StartHeld, tmp_path: Path
) -> None:
    job = hold(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; wc -c")
    taken = 0
    piece = b"x" * (100 * KILOBYTE)
    try:
        while True:
            send(job.folder, piece, patience_s=0.05)
            taken += len(piece)
    except LimitReached:
        pass
    (tmp_path / "go").touch()
    wait_until(lambda: _sends(job.folder, b"y"))
    send_eof(job.folder)
    job.ended()
    assert int(job.output()) == taken + 1
    assert 900 * KILOBYTE < taken < 1300 * KILOBYTE


def _sends(folder: AttemptFolder, data: bytes) -> bool:
    try:
        send(folder, data, patience_s=0.05)
    except LimitReached:
        return False
    return True


def test_of_much_that_was_sent_the_error_says_how_much_was_taken(hold: StartHeld) -> None:
    job = hold("sleep", "60")
    with pytest.raises(
        LimitReached, match=r"the first 1,\d\d\d,\d\d\d of 3,000,000 bytes were taken"
    ):
        send(job.folder, bytes(3_000_000), patience_s=0.1)


@pytest.mark.slow
def test_an_end_in_the_middle_of_a_long_send_cuts_it_where_the_sender_is_told(
    hold: StartHeld,
) -> None:
    job = hold("python3", "-c", COUNTING_READER)
    job.said("ready")
    told: list[str] = []

    def send_much() -> None:
        try:
            send(job.folder, bytes(50_000_000))
        except InputRefused as error:
            told.append(error.message)

    sender = threading.Thread(target=send_much)
    sender.start()
    job.said("some")
    send_eof(job.folder)
    sender.join()
    assert job.ended() == Ended(0, by_signal=False)
    taken = re.search(r"was closed before; the first ([\d,]+) of 50,000,000 bytes", told[0])
    assert taken is not None, told
    assert int(job.output().split()[-1]) == int(taken[1].replace(",", ""))


COUNTING_READER = """
import sys, time
print("ready", flush=True)
count = 0
while part := sys.stdin.buffer.read1(100_000):
    if count < 1_000_000 <= count + len(part):
        print("some", flush=True)
    count += len(part)
    time.sleep(0.01)
print(count)
"""


def test_many_senders_at_once_do_not_mix_their_pieces(hold: StartHeld) -> None:
    job = hold("cat")
    pieces = [f"<{number}:{'z' * 2000}>\n".encode() for number in range(60)]
    threads = [threading.Thread(target=send, args=(job.folder, piece)) for piece in pieces]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    send_eof(job.folder)
    job.ended()
    assert sorted(job.output().splitlines(keepends=True)) == sorted(pieces)


def test_a_job_that_closed_its_input_takes_no_more(hold: StartHeld) -> None:
    job = hold("exec <&-; echo closed; sleep 60")
    job.said("closed")

    def refused() -> str:
        try:
            send(job.folder, b"x")
        except InputRefused as error:
            return str(error)
        return ""

    assert "has closed its input" in wait_until(refused)
    send_eof(job.folder)  # that is what it has anyway


def test_one_that_has_ended_takes_no_input(hold: StartHeld) -> None:
    job = hold("true")
    job.ended()
    with pytest.raises(InputRefused, match="has ended"):
        send(job.folder, b"x")
    with pytest.raises(InputRefused, match="has ended"):
        send_eof(job.folder)


def test_one_without_input_says_how_to_have_one(start_wrapper: StartWrapper) -> None:
    started = start_wrapper("sleep", "60")
    with pytest.raises(InputRefused, match=r"started without input.*--stdin"):
        send(started.folder, b"x")


def test_one_that_has_not_started_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputNotYet, match="has not started yet"):
        send(AttemptFolder(str(tmp_path / "bg_1.1")), b"x")
    (tmp_path / "bg_2.1").mkdir()
    with pytest.raises(InputNotYet):
        send_eof(AttemptFolder(str(tmp_path / "bg_2.1")))


def test_a_start_that_was_given_up_is_no_end(tmp_path: Path) -> None:
    """Its keeper died, or lost it to a stop, before the word to go: another attempt may follow."""
    folder = AttemptFolder(str(tmp_path / "bg_1.1"))
    environment = {"PATH": os.environ["PATH"]}
    launch = Launch(["cat"], str(tmp_path), environment, 0o022, 1024, input="pipe")
    start(folder, launch, mark=mark_for(str(tmp_path), "bg_1", 1), cgroup=None).give_up()
    with pytest.raises(InputNotYet, match="bg_1 has not started yet"):
        send(folder, b"x")


def test_a_pipe_has_no_size(hold: StartHeld) -> None:
    job = hold("sleep", "60")
    with pytest.raises(InputRefused, match="has no terminal"):
        resize(job.folder, 10, 10)


# It ends as the job ended


@pytest.mark.parametrize("input", ["pipe", "pty"])
@pytest.mark.parametrize("code", [0, 1, 126, 137, 255])
def test_a3_the_exit_code_is_that_of_the_job(hold: StartHeld, input: str, code: int) -> None:
    assert hold(f"exit {code}", input=input).ended() == Ended(code, by_signal=False)


@pytest.mark.parametrize("input", ["pipe", "pty"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGHUP])
def test_a3_a_death_by_signal_is_told_from_an_exit_code(
    hold: StartHeld, input: str, number: signal.Signals
) -> None:
    job = hold(f"kill -{number.value} $$", input=input)
    assert job.ended() == Ended(128 + number, by_signal=True)


@pytest.mark.parametrize("input", ["pipe", "pty"])
def test_signals_that_end_programs_are_not_for_the_holder(hold: StartHeld, input: str) -> None:
    job = hold("trap 'echo heard; exit 7' TERM; echo up; while :; do sleep 0.05; done", input=input)
    job.said("up")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        os.kill(job.holder(), number)
    assert b"heard" not in job.output()
    for fd in job.started.tree.send(signal.SIGTERM):
        os.close(fd)
    assert job.ended() == Ended(7, by_signal=False)


def test_a_killed_holder_is_an_end_from_outside_and_its_job_reads_the_end(hold: StartHeld) -> None:
    job = hold("echo $$; cat; sleep 0.2; echo after")
    job.said("\n")
    os.kill(job.holder(), signal.SIGKILL)
    assert job.ended() == Ended(137, by_signal=True)
    job.said("after")  # what is left goes on, and is counted by the keeper
    with pytest.raises(InputRefused, match="has ended"):
        send(job.folder, b"x")


def test_a_killed_wrapper_ends_neither_holder_nor_job(hold: StartHeld) -> None:
    job = hold("cat")
    holder = job.holder()
    send(job.folder, b"one\n")
    job.said("one")
    os.kill(job.started.pid, signal.SIGKILL)
    job.started.collect()
    send(job.folder, b"two\n")
    job.said("two")
    send_eof(job.folder)
    wait_until(lambda: not is_running(holder))
    assert isinstance(inspect(job.folder), Vanished)


@pytest.mark.parametrize("input", ["pipe", "pty"])
def test_everything_else_is_as_without_input(hold: StartHeld, input: str, tmp_path: Path) -> None:
    """Environment, folder, umask, limits, default signals, no descriptor of ours."""
    job = hold(
        "sh",
        "-c",
        "env; pwd; umask; ulimit -n; ls -l /proc/self/fd; grep SigIgn /proc/self/status",
        input=input,
        environment={"PATH": os.environ["PATH"], "SAID": "é\n", "PYTHONHOME": "/no"},
        cwd=tmp_path,
    )
    assert job.ended() == Ended(0, by_signal=False)
    shown = job.output().decode().replace("\r\n", "\n")
    assert f"\n{tmp_path}\n0022\n1024\n" in shown
    ignored = int(shown.rpartition("SigIgn:")[2], 16)
    assert not ignored & 0x7FFFFFFF, "those above belong to libc, and come from outside"
    names = [line.partition("=")[0] for line in shown.splitlines() if "=" in line]
    assert sorted(set(names) - {"_", "SHLVL", "OLDPWD"}) == ["PATH", "PWD", "PYTHONHOME", "SAID"]
    descriptors = [line for line in shown.splitlines() if " -> " in line]
    assert len(descriptors) == 4, "0, 1, 2 and the folder that is listed"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", ""])
def test_any_argument_and_value_arrives_as_it_was(hold: StartHeld, locale: str) -> None:
    word = os.fsdecode(b"\xff \xc3\xa9 \n*$HOME")
    environment = {"PATH": os.environ["PATH"], "LC_ALL": locale, "odd.name": word}
    job = hold("bash", "-c", 'printf "%s|" "$@"; env', "sh", word, "", environment=environment)
    job.ended()
    assert job.output().startswith(os.fsencode(word) + b"||")
    assert b"odd.name=" + os.fsencode(word) in job.output()


@pytest.mark.parametrize("input", ["pipe", "pty"])
def test_what_cannot_be_executed_ends_as_in_a_shell(
    hold: StartHeld, input: str, tmp_path: Path
) -> None:
    script = tmp_path / "script"
    script.write_text("echo no first line $1\n", encoding="utf-8")
    script.chmod(0o755)
    job = hold(str(script), "but words", input=input)
    assert job.ended() == Ended(0, by_signal=False)
    assert b"no first line but words" in job.output()
    script.chmod(0o644)
    assert hold("sh", "-c", "exit 0", input=input).ended() == Ended(0, by_signal=False)
    assert hold("no-such-program", "x", input=input).ended() == Ended(127, by_signal=False)
    assert hold(str(tmp_path), "x", input=input).ended() == Ended(126, by_signal=False)


def test_a_piece_that_is_given_again_with_its_number_is_read_once(
    hold: StartHeld, tmp_path: Path
) -> None:
    """X5: who does not know whether it arrived, because it died in between, gives it again."""
    job = hold(f"cat; until [ -e {tmp_path}/go ]; do sleep 0.01; done")
    give(job.folder, 7, b"one\n")
    give(job.folder, 7, b"one\n")
    give(job.folder, 9, b"two\n")
    give(job.folder, 8, b"too late\n")
    give(job.folder, 12, None)
    give(job.folder, 12, None)
    (tmp_path / "go").touch()
    assert job.ended() == Ended(0, by_signal=False)
    assert job.output() == b"one\ntwo\n"
