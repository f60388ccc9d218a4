"""What the files of a wrapper say, in every condition that a crash can leave them in (A3)."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder
from backburner.model.limits import RESULT_MAX_BYTES
from backburner.model.states import ErrorKind
from backburner.work.process.condition import (
    BLANK,
    Alive,
    Condition,
    Ended,
    Lost,
    NotBegun,
    Settled,
    Vanished,
    inspect,
    settle,
)
from backburner.work.process.wrapper import Launch, is_wrapper, problem
from tests.faults.victims import (
    all_pids,
    children_of,
    is_running,
    processes_with,
    unique_seconds,
)
from tests.waiting import wait_until
from tests.work.process.conftest import Started, StartWrapper


def ended(started: Started) -> Condition:
    """What the files say once the wrapper has ended."""
    started.collect()
    return inspect(started.folder)


def alive(started: Started) -> Alive:
    """What the files say once the wrapper has said its pid."""

    def said() -> Alive | None:
        condition = inspect(started.folder)
        return condition if isinstance(condition, Alive) and condition.pid else None

    return wait_until(said)


def child_of(started: Started) -> int:
    """The command, once it runs, and is no copy of its shell any more."""

    def running() -> int | None:
        # Not by their numbers: those of what it has started itself may be smaller.
        others = [pid for pid in children_of(started.pid) if not is_wrapper(pid)]
        return others[0] if others else None

    return wait_until(running)


# Every condition


def test_a3_where_the_files_are_gone_nothing_can_be_said(tmp_path: Path) -> None:
    """They are made before the start: that it was not made is not to be concluded."""
    assert inspect(AttemptFolder(str(tmp_path / "gone"))) == Lost()


def test_a3_a_keeper_that_died_before_the_start_has_not_started_it(tmp_path: Path) -> None:
    """The files are made before the start: they alone do not mean that it began."""
    (tmp_path / "wrapper").write_bytes(BLANK)
    assert inspect(AttemptFolder(str(tmp_path))) == NotBegun()


def test_a3_a_keeper_that_died_when_it_made_the_file_has_not_started_it(tmp_path: Path) -> None:
    (tmp_path / "wrapper").touch()
    assert inspect(AttemptFolder(str(tmp_path))) == NotBegun()


def test_a3_a_wrapper_that_has_not_said_its_pid_yet_is_alive(tmp_path: Path) -> None:
    with (tmp_path / "wrapper").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert inspect(AttemptFolder(str(tmp_path))) == Alive(None)


def test_a3_a_running_wrapper_is_alive_and_has_its_pid(start_wrapper: StartWrapper) -> None:
    started = start_wrapper("sleep", "60")
    assert alive(started) == Alive(started.pid)


@pytest.mark.parametrize("code", [0, 1, 2, 126, 127, 128, 129, 137, 143, 254, 255])
def test_a3_an_exit_code_is_on_disk_when_it_has_ended(
    start_wrapper: StartWrapper, code: int
) -> None:
    started = start_wrapper("sh", "-c", f"exit {code}")
    assert ended(started) == Ended(code, by_signal=False)


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGHUP])
def test_a3_a_death_by_signal_is_told_from_the_exit_code_of_the_same_number(
    start_wrapper: StartWrapper, number: signal.Signals, shell: str
) -> None:
    """Which shell is the wrapper follows from the names of the variables."""
    environment = {
        "PATH": os.environ["PATH"],
        **({"no.identifier": "1"} if shell == "bash" else {}),
    }
    started = start_wrapper("sh", "-c", f"kill -{number} $$", environment=environment)
    assert ended(started) == Ended(128 + number, by_signal=True)
    started = start_wrapper("sh", "-c", f"exit {128 + number}", environment=environment)
    assert ended(started) == Ended(128 + number, by_signal=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGPIPE])
def test_a3_two_signals_of_which_shells_say_nothing_look_like_exit_codes(
    start_wrapper: StartWrapper, number: signal.Signals
) -> None:
    """A limit of the wrapper: the ending is right, only its kind is `exit` and not `killed`."""
    started = start_wrapper("sh", "-c", f"kill -{number} $$")
    assert ended(started) == Ended(128 + number, by_signal=False)


def test_a3_the_code_counts_as_soon_as_it_is_there(tmp_path: Path) -> None:
    """Also while the wrapper holds its lock still."""
    with (tmp_path / "wrapper").open("wb") as file:
        file.write(b"1234\nexit 7.\n\n")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        assert inspect(AttemptFolder(str(tmp_path))) == Ended(7, by_signal=False)


def test_a3_a_killed_wrapper_has_vanished_though_its_command_goes_on(
    start_wrapper: StartWrapper,
) -> None:
    started = start_wrapper("sleep", "60")
    child = child_of(started)
    os.kill(started.pid, signal.SIGKILL)
    assert ended(started) == Vanished(started.pid, "")
    assert is_running(child)
    assert started.tree.members() == [child]


def test_a3_a_recycled_pid_is_not_taken_for_the_wrapper(
    start_wrapper: StartWrapper, bystander: subprocess.Popen[bytes]
) -> None:
    """A pid in the file proves nothing: the lock does."""
    started = start_wrapper("sleep", "60")
    child_of(started)
    os.kill(started.pid, signal.SIGKILL)
    started.collect()
    with open(started.folder.wrapper, "r+b") as file:
        file.write(b"%d\n" % bystander.pid)
    assert inspect(started.folder) == Vanished(bystander.pid, "")


def test_a3_a_folder_that_went_away_meanwhile_is_complained_of(
    start_wrapper: StartWrapper, tmp_path: Path
) -> None:
    started = start_wrapper("true", cwd=tmp_path / "gone")
    condition = ended(started)
    assert isinstance(condition, Vanished)
    assert "gone" in condition.complaint


# The ending


ENDINGS = {
    "well": Ending.exited(0),
    "code": Ending.exited(7),
    "stopped": Ending.canceled(),
    "long": Ending.failed(ErrorKind.SPAWN, "x" * 5000),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_e4_the_file_becomes_the_result(start_wrapper: StartWrapper, name: str) -> None:
    started = start_wrapper("true")
    started.collect()
    settle(started.folder, ENDINGS[name])
    assert json.loads(Path(started.folder.result).read_text()) == ENDINGS[name].document()
    assert sorted(os.listdir(started.folder.path)) == ["output.log", "result.json"]
    assert os.stat(started.folder.result).st_mode & 0o777 == 0o600
    assert inspect(started.folder) == Settled(ENDINGS[name])


def test_e4_there_is_a_result_where_nothing_was_ever_started(tmp_path: Path) -> None:
    folder = AttemptFolder(str(tmp_path / "new"))
    settle(folder, Ending.canceled())
    assert inspect(folder) == Settled(Ending.canceled())


def test_a3_who_is_killed_between_writing_and_renaming_has_settled_it(tmp_path: Path) -> None:
    """One write replaces all that was there, so the rest of it cannot be taken for an ending."""
    folder = AttemptFolder(str(tmp_path))
    document = json.dumps(Ending.exited(3).document()).encode()
    Path(folder.wrapper).write_bytes(document.ljust(len(BLANK), b"\n"))
    assert inspect(folder) == Settled(Ending.exited(3))


def test_a3_a_result_that_makes_no_sense_says_nothing(tmp_path: Path) -> None:
    ending = Ending.exited(3).document()
    for document in (
        {"status": "unheard of"},
        {**ending, "status": "running"},
        {**ending, "exit_code": "3"},
        {**ending, "exit_code": 10**30},
        {**ending, "exit_code": True},
        {**ending, "exit_code": 1.0},
        {"status": "succeeded", "exit_code": False},
        {"status": "succeeded", "exit_code": 0.0},
        {**ending, "error": {"kind": "exit", "message": 3}},
        {**ending, "error": None},
        [ending],
    ):
        (tmp_path / "result.json").write_text(json.dumps(document))
        assert inspect(AttemptFolder(str(tmp_path))) == Lost(), document


@pytest.mark.parametrize(
    "result",
    ["NaN", "-Infinity", "1e999", "[" * 900 + "]" * 900, f'"{"x" * 6 * RESULT_MAX_BYTES}"'],
    ids=["NaN", "infinity", "too large a number", "too deep", "too long"],
)
def test_a3_a_result_that_no_record_takes_says_nothing(tmp_path: Path, result: str) -> None:
    said = f'{{"status": "succeeded", "exit_code": 0, "result": {result}}}'
    (tmp_path / "result.json").write_text(said)
    assert inspect(AttemptFolder(str(tmp_path))) == Lost()


def test_e4_an_answer_of_an_agent_is_as_long_as_its_text(tmp_path: Path) -> None:
    """However much longer it is as JSON: its end is read again after a crash of ours."""
    folder = AttemptFolder(str(tmp_path))
    ending = Ending.succeeded(exit_code=0, result="\x1b" * (RESULT_MAX_BYTES - 10))
    settle(folder, ending)
    assert inspect(folder) == Settled(ending)


@pytest.mark.parametrize("name", ["wrapper", "result.json"])
@pytest.mark.parametrize("put", ["mkdir {}", "mkfifo {}", "ln -s {} {}"])
def test_a3_a_job_that_replaces_its_files_has_lost_them(
    tmp_path: Path, put: str, name: str
) -> None:
    """Whoever looks neither fails nor waits for somebody who writes to a pipe."""
    subprocess.run(put.replace("{}", name), shell=True, check=True, cwd=tmp_path)
    assert inspect(AttemptFolder(str(tmp_path))) == Lost()


def test_a3_a_job_that_replaces_its_folder_has_lost_its_files(tmp_path: Path) -> None:
    (tmp_path / "attempt").touch()
    assert inspect(AttemptFolder(str(tmp_path / "attempt"))) == Lost()


@pytest.mark.parametrize("said", ["9" * 30, "²", "1 2"])
def test_a3_a_number_that_is_no_process_is_none(tmp_path: Path, said: str) -> None:
    (tmp_path / "wrapper").write_text(f"{said}\n")
    assert inspect(AttemptFolder(str(tmp_path))) == NotBegun()


def test_a3_what_we_lack_ourselves_says_nothing_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(OSError, match="too many"):
        inspect(AttemptFolder(str(tmp_path)))


# Signals to the wrapper


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM", "PIPE"])
def test_a3_the_wrapper_outlives_signals_to_it_and_reports_the_command(
    start_wrapper: StartWrapper, name: str
) -> None:
    """As when a terminal's Ctrl-C or a polite kill of the group reaches both."""
    seconds = unique_seconds()
    started = start_wrapper("sh", "-c", f"trap 'exit 5' TERM; sleep {seconds} & wait")
    wait_until(lambda: processes_with(seconds))
    os.kill(started.pid, signal.Signals[f"SIG{name}"])
    os.kill(started.pid, signal.SIGSTOP)  # processed after the other
    os.kill(started.pid, signal.SIGCONT)
    assert is_running(started.pid)
    assert alive(started) == Alive(started.pid)
    os.kill(child_of(started), signal.SIGTERM)
    assert ended(started) == Ended(5, by_signal=False)


def test_the_command_gets_default_signals_whatever_ours_are(start_wrapper: StartWrapper) -> None:
    """Python ignores SIGPIPE; a job that inherits that writes into nothing for ever."""
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    started = start_wrapper("grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status")
    started.collect()
    said = Path(started.folder.log).read_text().split()
    assert said[0::2] == ["SigBlk:", "SigIgn:"]
    blocked, ignored = (int(mask, 16) for mask in said[1::2])
    assert blocked == 0
    assert ignored & ((1 << 31) - 1) == 0  # the C library keeps 32 and 33 for itself


def test_the_command_leads_no_session_but_lives_in_one_of_its_own(
    start_wrapper: StartWrapper,
) -> None:
    started = start_wrapper("sleep", "60")
    child = child_of(started)
    assert os.getsid(child) == started.pid != os.getsid(0)
    assert os.getpgid(child) == started.pid


def test_files_of_a_job_are_its_owners_only(start_wrapper: StartWrapper) -> None:
    started = start_wrapper("true")
    started.collect()
    assert os.stat(started.folder.path).st_mode & 0o777 == 0o700
    for path in (started.folder.log, started.folder.wrapper):
        assert os.stat(path).st_mode & 0o777 == 0o600


def test_bash_hands_on_what_dash_would_drop_and_runs_no_startup_file_for_the_wrapper(
    start_wrapper: StartWrapper, tmp_path: Path
) -> None:
    """With bash as the wrapper, the caller's BASH_ENV and functions are the command's alone."""
    startup = tmp_path / "startup"
    startup.write_text(f"echo ran >>{tmp_path}/ran\n")
    environment = {
        "PATH": os.environ["PATH"],
        "no.identifier": "kept",
        "BASH_ENV": str(startup),
        "BASH_FUNC_umask%%": "() {  echo overridden; exit 9; }",
        "SHELLOPTS": "xtrace",
    }
    started = start_wrapper("env", environment=environment)
    assert ended(started) == Ended(0, by_signal=False)
    said = Path(started.folder.log).read_text().splitlines()
    assert "no.identifier=kept" in said
    assert f"BASH_ENV={startup}" in said
    assert any(line.startswith("BASH_FUNC_umask%%=") for line in said)
    assert not (tmp_path / "ran").exists()
    assert Path(started.folder.wrapper).read_text().split() == [str(started.pid), "exit", "0."]


# Before the start


def test_a_problem_that_can_be_known_is_said_before_the_start(tmp_path: Path) -> None:
    def of(argv: list[str], cwd: Path = tmp_path) -> str | None:
        return problem(Launch(argv, str(cwd), {"PATH": os.environ["PATH"]}, 0o022, 1024))

    script = tmp_path / "script"
    script.write_text("true\n")
    assert of(["true"]) is None
    assert of(["no-such-program-here"]) == "command not found: no-such-program-here"
    assert of(["./missing"]) == "there is no program ./missing"
    assert of(["./script"]) == "./script may not be executed"
    assert of([str(tmp_path)]) == f"{tmp_path} may not be executed"
    assert of(["true"], tmp_path / "gone") == f"there is no folder {tmp_path}/gone"
    assert of(["true"], script) == f"there is no folder {script}"


def test_a_start_that_the_kernel_refuses_is_an_error_and_leaves_no_process(
    start_wrapper: StartWrapper,
) -> None:
    before = set(all_pids())
    with pytest.raises(OSError, match="too long"):
        start_wrapper("true", "x" * 200_000)  # one argument may have 128 KiB
    assert not [pid for pid in set(all_pids()) - before if is_running(pid) and os.getppid() == pid]


# What it reads


@pytest.mark.parametrize("text", ["", "one line\n", "ä" * 500_000], ids=["none", "a line", "a MB"])
def test_c4_a_text_on_standard_input_is_read_whole(start_wrapper: StartWrapper, text: str) -> None:
    started = start_wrapper("cat", stdin_text=text)
    assert ended(started) == Ended(0, by_signal=False)
    assert Path(started.folder.log).read_text() == text


def test_d9_a_text_on_standard_input_lies_in_no_file(start_wrapper: StartWrapper) -> None:
    started = start_wrapper("sh", "-c", "readlink /proc/self/fd/0", stdin_text="swordfish")
    assert ended(started) == Ended(0, by_signal=False)
    assert "memfd:" in Path(started.folder.log).read_text()
    folder = Path(started.folder.path)
    assert not any("swordfish" in path.read_text() for path in folder.iterdir())


def test_a3_without_one_standard_input_is_at_its_end(start_wrapper: StartWrapper) -> None:
    assert ended(start_wrapper("cat")) == Ended(0, by_signal=False)


_WITHOUT_STANDARD_FILES = """
import os, sys
from backburner.model.home import AttemptFolder
from backburner.work.process import wrapper
folder = AttemptFolder(sys.argv[1])
for fd in range(3):
    os.close(fd)
launch = wrapper.Launch(["echo", "said"], "/", dict(os.environ), 0o022, 1024, input=sys.argv[2])
started = wrapper.start(folder, launch, mark=1 << 62, cgroup=None)
started.go()
os._exit(0)
"""


@pytest.mark.parametrize("reads", ["none", "pipe"])
def test_a_worker_without_standard_files_starts_commands_as_any_other(
    tmp_path: Path, reads: str
) -> None:
    """What it opens has the numbers that the wrapper is to have for something else."""
    folder = AttemptFolder(str(tmp_path / "t.1"))
    subprocess.run([sys.executable, "-c", _WITHOUT_STANDARD_FILES, folder.path, reads], check=True)
    wait_until(lambda: inspect(folder) == Ended(0, by_signal=False))
    assert Path(folder.log).read_text() == "said\n"
