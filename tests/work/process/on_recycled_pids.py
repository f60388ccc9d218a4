"""A3: a recycled pid is never taken for the job, and never signalled; `test_recycled_pid.py` runs

this. The number of a dead wrapper is really given to another process, through the kernel's counter:
among processes of its own, because whoever has just died elsewhere would be taken for alive when
its number is given out again. Else the files and the record are made to name a bystander.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, State, Task
from backburner.model.home import Home
from tests.faults.record import rows
from tests.faults.victims import (
    is_running,
    kill,
    kill_all_of_ours,
    processes_with,
    sleepers,
    unique_seconds,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

COUNTER = Path("/proc/sys/kernel/ns_last_pid")

Impostor = Callable[[Task], int]


@pytest.fixture
def started_with_pid() -> Iterator[Callable[[int], int]]:
    """Starts a process that has this pid."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(pid: int) -> int:
        for _ in range(2000):  # others fork too, and may get it before us
            wait_until(lambda: not Path(f"/proc/{pid}").exists(), message=f"{pid} is in use")
            COUNTER.write_text(str(pid - 1))
            process = subprocess.Popen(["sleep", unique_seconds()])
            if process.pid == pid:
                processes.append(process)
                return pid
            process.kill()
            process.wait()
        pytest.fail(f"no process got the pid {pid}")

    yield start

    dead = [process.pid for process in processes if not is_running(process.pid)]
    for process in processes:
        process.kill()
        process.wait()
    assert dead == [], "the process that got the pid was killed"


@pytest.fixture(params=["the pid itself", "the files and the record"])
def impostor(
    request: pytest.FixtureRequest,
    started_with_pid: Callable[[int], int],
    bystander: subprocess.Popen[bytes],
    home: Path,
) -> Impostor:
    """Lets another process stand where the wrapper of a task stood; answers its pid."""

    def take_the_place(task: Task) -> int:
        pid = task.record.pid
        assert pid is not None
        if request.param == "the pid itself":
            return started_with_pid(pid)
        wrapper = Path(Home(home).attempt(task.id, 1).wrapper)
        _, end, rest = wrapper.read_bytes().partition(b"\n")  # pids differ in length
        wrapper.write_bytes(b"%d" % bystander.pid + end + rest)
        rows(home, "UPDATE task SET pid = ? WHERE id = ?", bystander.pid, task.id)
        return bystander.pid

    return take_the_place


async def running(bb: Backburner, seconds: str) -> Task:
    """A job that sleeps, once it does."""
    task = await bb.session("s").run(f"sleep {seconds} & wait")
    wait_until(lambda: sleepers(seconds))
    return await task.refresh()


async def test_a3_a_job_that_died_unseen_is_not_mistaken_for_who_has_its_pid(
    home: Path, impostor: Impostor
) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await running(bb, seconds)
        kill_all_of_ours(home)
        assert task.record.pid is not None
        os.killpg(task.record.pid, signal.SIGKILL)
        wait_until(lambda: not processes_with(seconds))
        innocent = impostor(task)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.state is State.FAILED
        assert task.error is not None
        assert task.error.kind is ErrorKind.KILLED
        assert is_running(innocent)


async def test_a3_stopping_a_job_that_died_unseen_signals_nobody(
    home: Path, impostor: Impostor
) -> None:
    """A4: it finished before; its real record comes back."""
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await running(bb, seconds)
        kill_all_of_ours(home)
        assert task.record.pid is not None
        os.killpg(task.record.pid, signal.SIGKILL)
        wait_until(lambda: not processes_with(seconds))
        innocent = impostor(task)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).stop(force=True)
        assert task.state.terminal
        assert is_running(innocent)


async def test_a3_the_exit_code_counts_and_not_the_pid(home: Path, impostor: Impostor) -> None:
    """The job ended while nobody looked, and its number was given out again."""
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"sleep {seconds} & wait; exit 23")
        wait_until(lambda: sleepers(seconds))
        await task.refresh()
        kill_all_of_ours(home)
        kill(*sleepers(seconds))
        pid = task.record.pid
        assert pid is not None
        wait_until(lambda: not is_running(pid))
        innocent = impostor(task)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.exit_code == 23
        assert is_running(innocent)


async def test_a3_stop_ends_what_goes_on_and_not_who_has_the_wrappers_pid(
    home: Path, impostor: Impostor
) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        # In a session of its own: a number is not given out again while a session has it.
        task = await bb.session("s").run(f"exec setsid sleep {seconds}")
        wait_until(lambda: sleepers(seconds))
        await task.refresh()
        kill_all_of_ours(home)
        assert task.record.pid is not None
        kill(task.record.pid)
        innocent = impostor(task)
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(task.id)
        assert task.state is State.RUNNING
        assert processes_with(seconds)
        await task.stop(grace=1)
        assert task.state is State.CANCELED
        assert processes_with(seconds) == []
        assert is_running(innocent)
