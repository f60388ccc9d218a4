"""A wrapper that was born in its cgroup is like any other; and no start depends on a launcher."""

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path

import pytest

from backburner import Backburner, State
from backburner.model.home import AttemptFolder
from backburner.work.process import cgroup, launcher, wrapper
from backburner.work.process.condition import Ended, NotBegun, inspect
from backburner.work.process.launcher import Launcher
from backburner.work.process.mark import mark_for, mark_of
from tests.faults.victims import (
    all_pids,
    arguments_of,
    children_of,
    is_running,
    kill,
    wait_for_keeper,
)
from tests.waiting import wait_until
from tests.work.process.conftest import Started, StartWrapper

PATH = {"PATH": os.environ["PATH"]}


class Noting(Launcher):
    """Notes which wrappers it has started."""

    def __init__(self) -> None:
        super().__init__()
        self.launched: list[int] = []

    def spawn(self, *words: object, **how: object) -> int:
        """As every launcher."""
        pid = super().spawn(*words, **how)  # type: ignore[arg-type]
        self.launched.append(pid)
        return pid


@pytest.fixture
def group(family: str) -> Iterator[str]:
    """The cgroup of a task."""
    folder = f"{family}/t.1"
    assert cgroup.make(folder)
    yield folder
    wait_until(lambda: not cgroup.is_populated(folder))
    cgroup.remove(folder)


@pytest.fixture
def unready(monkeypatch: pytest.MonkeyPatch) -> Iterator[Noting]:
    """A launcher without a process, for which no start comes too soon."""
    monkeypatch.setattr(launcher, "_CROWD_S", 0)
    monkeypatch.setattr(launcher, "_CROWD", 2)
    monkeypatch.setattr(launcher, "_APART_S", 0)
    each = Noting()
    yield each
    pid = each.pid
    each.close()
    assert pid is None or not os.path.exists(f"/proc/{pid}"), "it was not collected"


@pytest.fixture
def ready(unready: Noting) -> Noting:
    """One that waits for requests."""
    make_ready(unready)
    return unready


def make_ready(each: Launcher) -> int:
    """Let a start miss it, and wait until it is there."""
    each.takes_next()
    each.tend()
    wait_until(each.is_ready, message="the launcher does not come up")
    assert each.pid is not None
    return each.pid


def is_collected(each: Launcher) -> bool:
    """Whether its worker, which looks, has no process of it any more."""
    each.tend()
    return each.pid is None


def output_of(started: Started) -> str:
    """What it wrote, once it has ended well."""
    started.collect()
    assert inspect(started.folder) == Ended(0, by_signal=False)
    return Path(started.folder.log).read_text()


@contextlib.contextmanager
def waiting(
    tmp_path: Path, group: str, each: Launcher | None, **how: object
) -> Generator[wrapper.Started]:
    """A wrapper that never gets the word."""
    launch = wrapper.Launch(["true"], str(tmp_path), PATH, 0o022, 1024, **how)  # type: ignore[arg-type]
    folder = AttemptFolder(str(tmp_path / "waiting.1"))
    mark = mark_for(str(tmp_path), "waiting", 1)
    started = wrapper.start(folder, launch, mark=mark, cgroup=group, launcher=each)
    try:
        yield started
        # A child of a launcher has it before it is a wrapper, but not from its first moment.
        wait_until(lambda: mark_of(started.pid) == mark)
    finally:
        started.give_up()
    assert inspect(folder) == NotBegun()


@pytest.fixture
def nothing_handed_on() -> Iterator[None]:
    """What whoever started the tests has left open is for no child of ours."""
    fds = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]
    there = [fd for fd in fds if os.path.lexists(f"/proc/self/fd/{fd}")]
    handed_on = [fd for fd in there if os.get_inheritable(fd)]
    for fd in handed_on:
        os.set_inheritable(fd, False)
    yield
    for fd in handed_on:
        os.set_inheritable(fd, True)


# Like any other


def test_it_is_in_its_cgroup_from_its_first_moment_and_a_child_of_ours(
    tmp_path: Path, group: str, ready: Noting
) -> None:
    with waiting(tmp_path, group, ready) as started:
        assert cgroup.members(group) == [started.pid] == ready.launched
        assert started.pid in children_of(os.getpid())
        assert wrapper.is_wrapper(started.pid)


FACTS = """
id
umask
pwd
nice
cat /proc/self/limits /proc/self/cgroup /proc/self/oom_score_adj
env | sort
grep -E '^(Sig[BIC]|Shd|Cap|NoNew|Seccomp:|Cpus_allowed:|Groups|Umask)' /proc/self/status
grep -E '^(PPid|Sig[BIC])' /proc/$PPID/status
ls /proc/$PPID/fd
for each in /proc/$$/fd/*; do echo "${each##*/} $(readlink "$each" | sed 's/:.*//')"; done
[ "$(cut -d' ' -f 5,6 /proc/$$/stat)" = "$PPID $PPID" ] && echo session of the wrapper
"""


@pytest.mark.usefixtures("nothing_handed_on")
def test_a_command_finds_everything_as_without_a_launcher(
    tmp_path: Path, group: str, ready: Noting, start_wrapper: StartWrapper
) -> None:
    """Rights, limits, mark, signals, environment, descriptors, session and parents."""
    said: list[str] = []
    for each in (None, ready):
        started = start_wrapper(
            "sh", "-c", FACTS,
            group=group, launcher=each, mark=mark_for("home", "task", 1), separate_stderr=True,
            environment={**PATH, "GIVEN": "a b\nc"},
        )  # fmt: skip
        said.append(output_of(started).replace(started.folder.path, "FOLDER"))
        assert Path(started.folder.stderr).read_text() == ""
    assert len(ready.launched) == 1
    assert said[0].splitlines() == said[1].splitlines()
    assert "session of the wrapper" in said[0]
    assert f"PPid:\t{os.getpid()}\n" in said[0]


@pytest.mark.usefixtures("nothing_handed_on")
@pytest.mark.parametrize(
    "how", [{}, {"input": "pipe"}, {"stdin_text": "ä\n"}, {"separate_stderr": True}], ids=str
)
def test_a_wrapper_has_the_descriptors_that_it_has_without_a_launcher(
    tmp_path: Path, group: str, ready: Noting, how: dict[str, object]
) -> None:
    def waits(pid: int) -> bool:
        """Whether it reads the word: only now all that its shell has put away is there."""
        return os.readlink(f"/proc/{pid}/fd/0").startswith("pipe:")

    def kinds(pid: int) -> dict[str, str]:
        fds = Path(f"/proc/{pid}/fd")
        return {each.name: os.readlink(each).split("[")[0] for each in fds.iterdir()}

    found: list[dict[str, str]] = []
    for each in (None, ready):
        with waiting(tmp_path, group, each, **how) as started:
            wait_until(partial(waits, started.pid))
            found.append(kinds(started.pid))
    assert len(ready.launched) == 1
    assert found[0] == found[1]


def test_an_environment_of_any_size_and_any_names_arrives(
    group: str, ready: Noting, start_wrapper: StartWrapper
) -> None:
    environment = {
        **PATH,
        **{f"LARGE_{number}": str(number) * 50_000 for number in range(10)},
        "with.dot": "dots",
        "BYTES": "caf\udce9 \U0001f680",
        "EMPTY": "",
    }
    started = start_wrapper("env", "-0", group=group, launcher=ready, environment=environment)
    started.collect()
    assert ready.launched == [started.pid]
    pairs = Path(started.folder.log).read_bytes().rstrip(b"\0").split(b"\0")
    seen = dict(pair.split(b"=", 1) for pair in pairs)
    expected = {os.fsencode(name): os.fsencode(text) for name, text in environment.items()}
    assert expected.items() <= seen.items()


def test_what_it_reads_and_how_it_ended_arrive(
    group: str, ready: Noting, start_wrapper: StartWrapper
) -> None:
    started = start_wrapper(
        "sh", "-c", "cat; exit 7", group=group, launcher=ready, stdin_text="ä" * 100_000
    )
    started.collect()
    assert ready.launched == [started.pid]
    assert inspect(started.folder) == Ended(7, by_signal=False)
    assert Path(started.folder.log).read_text() == "ä" * 100_000


def test_what_the_kernel_refuses_to_run_is_the_same_error_and_leaves_no_process(
    group: str, ready: Noting, start_wrapper: StartWrapper
) -> None:
    before = children_of(os.getpid())
    with pytest.raises(OSError, match="too long"):
        start_wrapper("true", "x" * 200_000, group=group, launcher=ready)
    with pytest.raises(ValueError, match="environment variable name"):
        start_wrapper("true", group=group, launcher=ready, environment={"a=b": "c"})
    assert children_of(os.getpid()) == before
    assert output_of(start_wrapper("echo", "well", group=group, launcher=ready)) == "well\n"
    assert len(ready.launched) == 1


# No start depends on it


def runs_once(start_wrapper: StartWrapper, group: str, each: Launcher, tmp_path: Path) -> Started:
    """A start that has run its command exactly once."""
    ran = tmp_path / "ran"
    ran.unlink(missing_ok=True)
    line = f"echo ran >>{ran}; cat /proc/self/cgroup"
    started = start_wrapper("sh", "-c", line, group=group, launcher=each)
    assert group.rpartition("/")[2] in output_of(started)
    assert ran.read_text() == "ran\n"
    assert not cgroup.is_populated(group)
    return started


def test_the_first_start_does_not_wait_for_it(
    group: str, unready: Noting, start_wrapper: StartWrapper, tmp_path: Path
) -> None:
    runs_once(start_wrapper, group, unready, tmp_path)
    assert unready.pid is None
    unready.tend()
    assert unready.pid is not None
    wait_until(unready.is_ready)
    started = runs_once(start_wrapper, group, unready, tmp_path)
    assert unready.launched == [started.pid]


def test_in_a_crowd_of_starts_wrappers_go_without_it(
    group: str,
    ready: Noting,
    start_wrapper: StartWrapper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launcher, "_CROWD_S", 3600)
    started = [runs_once(start_wrapper, group, ready, tmp_path).pid for _ in range(3)]
    assert ready.launched == started[:1]
    monkeypatch.setattr(launcher, "_CROWD_S", 0)
    later = runs_once(start_wrapper, group, ready, tmp_path)
    assert ready.launched == [started[0], later.pid]


def test_one_that_was_killed_is_replaced_and_its_start_is_made(
    group: str, ready: Noting, start_wrapper: StartWrapper, tmp_path: Path
) -> None:
    first = ready.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    runs_once(start_wrapper, group, ready, tmp_path)
    assert ready.launched == []
    assert not os.path.exists(f"/proc/{first}")
    ready.tend()
    wait_until(ready.is_ready)
    assert ready.pid != first
    started = runs_once(start_wrapper, group, ready, tmp_path)
    assert ready.launched == [started.pid]


def test_one_that_hangs_is_not_waited_for_and_starts_nothing_afterwards(
    group: str, ready: Noting, start_wrapper: StartWrapper, tmp_path: Path
) -> None:
    first = ready.pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    started = runs_once(start_wrapper, group, ready, tmp_path)
    with contextlib.suppress(ProcessLookupError):
        os.kill(first, signal.SIGCONT)
    assert ready.launched == []
    assert not os.path.exists(f"/proc/{first}")
    assert not cgroup.is_populated(group)
    assert inspect(started.folder) == Ended(0, by_signal=False)
    assert (tmp_path / "ran").read_text() == "ran\n"


def a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """Another one in the place of the launcher's."""
    path = tmp_path / "launching.py"
    before = f"import sys; sys.path.insert(0, {os.path.dirname(launcher.__file__)!r})\n"
    path.write_text(f"{before}import launching, os\n{lines}\nlaunching.main(60)\n")
    monkeypatch.setattr(launcher, "_PROGRAM", str(path))


def until_there(gate: Path) -> str:
    """A line that waits for a file."""
    return f"while not os.path.exists({str(gate)!r}): launching.resource.getrusage(0)"


def test_a_wrapper_of_one_that_died_before_its_answer_runs_nothing(
    group: str,
    unready: Noting,
    start_wrapper: StartWrapper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worst moment: it runs and waits for the word, and nobody knows its pid."""
    lines = "true = launching._carry_out\n"
    lines += "launching._carry_out = lambda *request: true(*request) and os._exit(1)"
    a_program(tmp_path, monkeypatch, lines)
    make_ready(unready)
    before = set(children_of(os.getpid()))
    runs_once(start_wrapper, group, unready, tmp_path)
    assert unready.launched == []
    assert set(children_of(os.getpid())) < before


@pytest.mark.timeout(60)
def test_nobody_waits_for_one_that_takes_long_to_come_up(
    unready: Noting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = tmp_path / "gate"
    a_program(tmp_path, monkeypatch, until_there(gate))
    unready.takes_next()
    unready.tend()
    assert not any(unready.takes_next() for _ in range(1000))
    gate.touch()
    wait_until(unready.is_ready)


def test_a_gentle_stop_takes_no_child_of_it_for_the_command(
    group: str, unready: Noting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would end it before it can be a wrapper, which outlives such a signal."""
    gate = tmp_path / "gate"
    lines = f"def slowly(*how):\n    {until_there(gate)}\n    become(*how)\n"
    lines += "become, launching._become = launching._become, slowly"
    a_program(tmp_path, monkeypatch, lines)
    make_ready(unready)
    launch = wrapper.Launch(["true"], str(tmp_path), PATH, 0o022, 1024)
    folder = AttemptFolder(str(tmp_path / "early.1"))
    started = wrapper.start(folder, launch, mark=1 << 62, cgroup=group, launcher=unready)
    assert str(tmp_path / "launching.py") in arguments_of(started.pid)
    assert wrapper.is_wrapper(started.pid)
    gate.touch()
    started.go()
    os.waitpid(started.pid, 0)
    assert inspect(folder) == Ended(0, by_signal=False)


@pytest.mark.parametrize("why", [errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG])
def test_a_kernel_that_does_not_know_the_call_is_asked_once(
    unready: Noting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    lines = f"launching._clone_into = lambda group: launching.ctypes.set_errno({why}) and 0 or -1"
    a_program(tmp_path, monkeypatch, lines)
    make_ready(unready)
    with waiting(tmp_path, str(tmp_path), unready):
        assert unready.launched == []
    assert not unready.takes_next()
    unready.tend()
    assert unready.pid is None


def test_a_cgroup_that_it_may_not_use_is_not_its_end(
    group: str, ready: Noting, start_wrapper: StartWrapper, tmp_path: Path
) -> None:
    pid = ready.pid
    no_cgroup = tmp_path / "folder"
    no_cgroup.mkdir()
    started = start_wrapper("echo", "well", group=str(no_cgroup), launcher=ready)
    assert output_of(started) == "well\n"
    assert ready.launched == []
    started = runs_once(start_wrapper, group, ready, tmp_path)
    assert ready.launched == [started.pid]
    assert ready.pid == pid


def test_one_that_cannot_even_begin_is_not_started_again(
    group: str,
    unready: Noting,
    start_wrapper: StartWrapper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launcher, "_PROGRAM", str(tmp_path / "gone"))
    assert not Launcher().takes_next()
    unready.takes_next()
    assert not is_collected(unready)
    wait_until(partial(is_collected, unready))
    runs_once(start_wrapper, group, unready, tmp_path)
    assert is_collected(unready)


def test_one_of_another_release_is_not_used(
    unready: Noting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker outlives an upgrade, and speaks to the program that it was made for or to none."""
    newer = tmp_path / "launching.py"
    newer.write_text(f"{Path(launcher.__file__).with_name(newer.name).read_text()}# and more\n")
    monkeypatch.setattr(launcher, "_PROGRAM", str(newer))
    unready.takes_next()
    unready.tend()
    wait_until(partial(is_collected, unready))
    assert not unready.is_ready()


def test_one_that_lacks_room_for_descriptors_starts_nothing(
    group: str,
    unready: Noting,
    start_wrapper: StartWrapper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = "launching.resource.setrlimit(launching.resource.RLIMIT_NOFILE, (14, 14))"
    a_program(tmp_path, monkeypatch, room)
    make_ready(unready)
    runs_once(start_wrapper, group, unready, tmp_path)
    assert unready.launched == []


def test_one_that_cannot_be_watched_is_collected_and_not_started_again(
    unready: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "pidfd_open", refuse)
    before = children_of(os.getpid())
    for _ in range(3):
        unready.takes_next()
        unready.tend()
    assert children_of(os.getpid()) == before


def test_nothing_of_an_environment_stays_in_its_memory(
    tmp_path: Path, group: str, ready: Noting
) -> None:
    secret = os.urandom(16).hex()
    launch = wrapper.Launch(["true"], str(tmp_path), {**PATH, "KEY": secret}, 0o022, 1024)
    folder = AttemptFolder(str(tmp_path / "secret.1"))
    started = wrapper.start(folder, launch, mark=1 << 62, cgroup=group, launcher=ready)
    assert ready.launched == [started.pid]
    assert secret.encode() not in memory_of(ready.pid)
    started.give_up()


def memory_of(pid: int | None) -> bytes:
    """All that it can write to."""
    found = b""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            place, rights = line.split()[:2]
            if rights.startswith("rw") and "[v" not in line:
                begin, end = (int(at, 16) for at in place.split("-"))
                memory.seek(begin)
                found += memory.read(end - begin)
    return found


def test_one_that_has_other_limits_than_we_is_replaced(
    group: str, ready: Noting, start_wrapper: StartWrapper, tmp_path: Path
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    new = 4096 if soft != 4096 else 8192
    first = ready.pid
    resource.setrlimit(resource.RLIMIT_CORE, (new, hard))
    try:
        runs_once(start_wrapper, group, ready, tmp_path)
        assert ready.pid != make_ready(ready) != first
        started = start_wrapper("sh", "-c", "ulimit -Sc", group=group, launcher=ready)
        assert int(output_of(started)) * 512 == new
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert ready.launched == [started.pid]


def test_x9_who_lives_alone_with_it_makes_room_for_a_controller(
    ready: Noting, tmp_path: Path
) -> None:
    """It is no stranger in the unit of systemd that is to hand on the limit of memory."""
    own, aside = tmp_path / "backburner.service", tmp_path / "backburner.service/backburner-keeper"
    aside.mkdir(parents=True)
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n{ready.pid}\n")
    (own / "cgroup.subtree_control").mkdir()  # cannot be written to
    (aside / "cgroup.procs").touch()
    assert not cgroup.enable(str(own / "backburner.0123456789ab"), "memory")
    assert (aside / "cgroup.procs").read_text().startswith(str(ready.pid))


# It leaves


def test_one_that_nobody_asks_ends_and_is_collected(
    unready: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "_IDLE_S", 0.01)
    unready.takes_next()
    unready.tend()
    wait_until(partial(is_collected, unready))
    unready.takes_next()
    unready.tend()
    assert unready.pid is not None, "it is not there for the next"


WORKER = """
import os, time
from backburner.work.process.launcher import Launcher
kept = os.open("/dev/null", os.O_RDONLY)
os.set_inheritable(kept, True)
launcher = Launcher()
launcher.takes_next()
launcher.tend()
while not launcher.is_ready():
    time.sleep(0.001)
print(launcher.pid, flush=True)
time.sleep(3600)
"""


def test_it_goes_with_a_worker_that_was_killed_and_holds_nothing_of_it() -> None:
    environment = {**os.environ, "BACKBURNER_TASK_ID": "bg_1"}
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], stdout=subprocess.PIPE, env=environment
    ) as worker:
        assert worker.stdout is not None
        pid = int(worker.stdout.readline())
        held = {os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
        assert {link.split(":")[0] for link in held} == {"/dev/null", "socket"}
        assert b"BACKBURNER" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert os.getsid(pid) == pid
        assert mark_of(pid) is None
        worker.kill()
    wait_until(lambda: not is_running(pid), message="the launcher outlives its worker")


def launchers_of(pid: int) -> list[int]:
    """Those among its children."""
    return [child for child in children_of(pid) if cgroup.LAUNCHER in arguments_of(child)]


@pytest.mark.slow
async def test_a_keeper_has_one_after_its_first_job_and_takes_it_along(
    home: Path, family: str
) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await (await session.run("true")).wait(30)
        keeper = wait_for_keeper(home)
        (pid,) = wait_until(lambda: launchers_of(keeper))
        for _ in range(3):
            task = await (await session.run("exit 0")).wait(30)
            assert task.state is State.SUCCEEDED, task.error
        assert launchers_of(keeper) == [pid]
        kill(keeper)
        wait_until(lambda: pid not in all_pids() or not is_running(pid))
