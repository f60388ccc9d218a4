"""X9: niceness, memory and CPU time: held by the kernel, and told in the ending."""

import os
import shlex
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, State, Task
from backburner.runtime.allowance import limits_in_force
from backburner.work.process.memory import MemoryGroups
from tests.conftest import REPOSITORY
from tests.faults.victims import kill_all_of_ours, kill_keeper, sleepers, unique_seconds
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

MB = 1024 * 1024
PYTHON = shlex.quote(sys.executable)
HOG = f"{PYTHON} -c 'x = bytearray(400 << 20); print(len(x))'"
BURN = "while True: pass"


def group_of(task: Task) -> str | None:
    assert task.record.place is not None
    return task.record.place.memory_cgroup


def siblings(group: str) -> list[str]:
    """Of a cgroup, those of its home."""
    family = os.path.dirname(group)
    return os.listdir(family) if os.path.exists(family) else []


def assert_killed(task: Task, *words: str) -> None:
    assert (task.state, task.exit_code) == (State.FAILED, None)
    assert task.error is not None
    assert task.error.kind is ErrorKind.KILLED
    for word in words:
        assert word in task.error.message


@pytest.fixture
def counted(tmp_path: Path) -> None:
    """A machine whose kernel counts the memory of a job as a whole for us."""
    # Of its own: other tests look at the same time, and each removes what it made.
    groups = MemoryGroups(uuid.uuid4().hex[:12], None)
    folder = groups.make("probe", 64 * MB, None)
    if folder is None:
        pytest.fail("no memory cgroup can be made here: run this as root, with cgroups mounted")
    os.rmdir(folder)
    groups.close()


# Niceness


async def test_x9_niceness_is_that_of_everything_it_starts(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("nice").run("nice; sh -c nice", nice=7)
        await task.wait(30)
        assert (await task.output()).text == "7\n7\n"
        assert limits_in_force(task.record) == ["niceness 7"]
        again = await (await task.rerun()).wait(30)
        assert (await again.output()).text == "7\n7\n"


def test_x9_a_niceness_without_the_privilege_for_it_runs_nothing(
    home: Path, tmp_path: Path
) -> None:
    program = f"""
import asyncio
from backburner import Backburner
async def main():
    async with Backburner.open({str(home)!r}) as bb:
        task = await bb.session("s").run("touch {tmp_path}/ran", nice=-20)
        await task.wait(30)
        print(task.error.kind, task.error.message)
asyncio.run(main())
"""
    # Root without its capabilities; the keeper that it starts has none either.
    drop = [] if os.getuid() else ["setpriv", "--bounding-set=-all"]
    done = subprocess.run(
        [*drop, sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    assert done.stdout.startswith("spawn"), done
    assert "a niceness of -20 needs a privilege" in done.stdout
    assert not (tmp_path / "ran").exists()


# Memory


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("line", [HOG, f"{HOG}; exit $?", f"setsid {HOG} & wait $!"])
async def test_x9_what_uses_more_memory_is_killed_and_it_is_said_why(
    shared_home: Path, line: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(line)
        task = await (await session.run(line, memory=64 * MB)).wait(60)
        assert_killed(task, "it used more than its memory limit of 64M")
        (told,) = await session.told()
        assert "memory limit of 64M" in told.text
        group = group_of(task)
        assert group is not None
        assert not os.path.exists(group)
        assert "cgroup v" in limits_in_force(task.record)[0]


@pytest.mark.usefixtures("counted")
async def test_x9_the_limit_is_for_all_its_processes_together(shared_home: Path) -> None:
    part = f"{PYTHON} -c 'import time; x = bytearray(60 << 20); time.sleep(20)'"
    async with Backburner.open(shared_home) as bb:
        session = bb.session("together")
        line = f"{part} & {part} & {part} & wait -n; exit $?"
        task = await (await session.run(line, memory=128 * MB)).wait(60)
        assert_killed(task, "it used more than its memory limit of 128M")
        await task.stop(force=True)
        enough = await (await session.run(HOG, memory=600 * MB)).wait(60)
        assert (enough.state, enough.record.summary) == (State.SUCCEEDED, None)


@pytest.mark.usefixtures("counted")
async def test_x9_a_job_that_copes_with_the_kill_has_succeeded_and_says_so(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        line = f"{HOG} || echo less"
        task = await (await bb.session("copes").run(line, memory=64 * MB)).wait(60)
        assert task.state is State.SUCCEEDED
        assert "memory limit of 64M" in (task.record.summary or "")


@pytest.mark.usefixtures("counted")
async def test_x9_a_plain_failure_and_a_kill_by_others_are_not_blamed_on_the_limit(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("plain")
        task = await (await session.run("exit 3", memory=64 * MB, cpu_time=60)).wait(30)
        assert task.error is not None
        assert (task.exit_code, task.error.message) == (3, "exit code 3")
        task = await (await session.run("kill -9 $$", memory=64 * MB, cpu_time=60)).wait(30)
        assert_killed(task, "SIGKILL from outside")


@pytest.mark.slow
@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("who", ["keeper", "keeper and guardian"])
async def test_x9_limits_and_their_telling_survive_the_keeper(
    home: Path, tmp_path: Path, who: str
) -> None:
    line = f"until test -e {tmp_path}/go; do sleep 0.02; done; {HOG}"
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(line, memory=64 * MB)

        async def runs() -> bool:
            return (await task.refresh()).state is State.RUNNING

        await wait_until_async(runs)
        kill_keeper(home) if who == "keeper" else kill_all_of_ours(home)
        (tmp_path / "go").touch()
        await task.wait(60)
        assert_killed(task, "it used more than its memory limit of 64M")
        group = group_of(task)
        assert group is not None
        assert not os.path.exists(group)


@pytest.mark.slow
@pytest.mark.usefixtures("counted")
async def test_x9_what_a_keeper_that_died_has_left_the_next_one_removes(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"sleep {seconds}", memory=64 * MB)
        wait_until(lambda: sleepers(seconds))
        group = group_of(await task.refresh())
        assert group is not None
        orphan = f"{os.path.dirname(group)}/bg_orphan.1"
        os.mkdir(orphan)  # of a start whose keeper died before the record knew of it
        kill_keeper(home)
        await wait_until_async(lambda: not os.path.exists(orphan))
        assert os.path.exists(group)
        await task.stop(force=True)
        assert not os.path.exists(group)


@pytest.mark.slow
@pytest.mark.usefixtures("counted")
async def test_x9_each_try_has_a_cgroup_of_its_own_and_none_is_left(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"sleep 0.1; {HOG}", memory=64 * MB, retries=1)
        await task.wait(60)
        assert_killed(task, "it used more than its memory limit of 64M (tried 2 times)")
        failed = [e.data async for e in task.events() if e.kind.value == "failed_try"]
        assert failed[0]["error"]["message"] == "it used more than its memory limit of 64M"
        last = group_of(task)
        assert last is not None
        assert last.endswith(".2")
        assert [name for name in siblings(last) if name.startswith(task.id)] == []


async def test_x9_without_cgroups_each_process_is_limited_and_a_failure_mentions_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_CGROUPS", "0")
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").run(HOG, memory=200 * MB)).wait(60)
        assert task.state is State.FAILED
        assert task.error is not None
        assert "each of its processes was limited to 200M of memory" in task.error.message
        assert "MemoryError" in (await task.output()).text
        assert group_of(task) is None
        said = ["memory 200M for each process (RLIMIT_AS)"]
        assert limits_in_force(task.record) == said


# CPU time


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        f"exec {PYTHON} -c '{BURN}'",
        f"{PYTHON} -c '{BURN}'; exit $?",
        f'{PYTHON} -c "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n{BURN}"',
    ],
    ids=["itself", "a child of its shell", "one that does not heed"],
)
async def test_x9_what_computes_longer_is_ended_and_it_is_said_why(
    shared_home: Path, line: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await (await bb.session(line).run(line, cpu_time=1)).wait()
        assert_killed(task, "used more than the CPU time limit of 1s")
        assert limits_in_force(task.record) == ["CPU time 1s for each process"]


async def test_x9_time_that_it_sleeps_is_not_cpu_time(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("sleeps").run("sleep 1.5; ulimit -t", cpu_time=1.2)
        await task.wait(30)
        assert (task.state, (await task.output()).text) == (State.SUCCEEDED, "2\n")


@pytest.mark.slow
@pytest.mark.usefixtures("counted", "clean_environment")
async def test_x9_a_keeper_that_a_limited_job_has_called_is_not_limited_itself(
    new_home: Callable[[], Path],
) -> None:
    """It would take its limits to the jobs of everybody else."""
    ours, other = new_home(), new_home()
    look = "'cat /proc/self/cgroup'"
    call = f"{PYTHON} -m backburner.cli run --home {other} --session s --id inner -- {look}"
    async with Backburner.open(ours) as bb:
        outer = await bb.session("s").run(call, memory=300 * MB)
        await outer.wait(60)
        assert outer.state is State.SUCCEEDED, (await outer.output()).text
        family = os.path.basename(os.path.dirname(group_of(outer) or ""))
    async with Backburner.open(other) as bb:
        inner = await (await bb.session("s").task("inner")).wait(30)
        text = (await inner.output()).text
        assert text
        assert family not in text
