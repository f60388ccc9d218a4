"""No start depends on a launcher, and nothing is left of one."""

import contextlib
import errno
import os
import resource
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from backburner import Backburner, State
from backburner.model.home import AttemptFolder
from backburner.work.process import cgroup, launcher, wrapper
from backburner.work.process.condition import Ended, inspect
from backburner.work.process.launcher import Launcher
from backburner.work.process.mark import mark_of
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
from tests.work.process.launchers import PATH, Noting, is_collected, make_ready, output_of, waiting


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
