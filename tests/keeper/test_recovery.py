"""What becomes of a job when things around it die: wrapper, group, machine, its caller."""

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, EventKind, SignalKind, State, Task
from backburner.work.process.condition import Ended, inspect
from tests.faults.record import rows
from tests.faults.victims import (
    has_begun,
    is_running,
    keeper_comes,
    keeper_of,
    kill,
    kill_all_of_ours,
    kill_keeper,
    nobody_keeps,
    processes_with,
    sleepers,
    unique_seconds,
    wait_for_keeper,
)
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow


async def sleeping(bb: Backburner, line: str, seconds: str) -> Task:
    """A job, once its sleep is asleep."""
    task = await bb.session("s").run(line.format(seconds))
    wait_until(lambda: sleepers(seconds))
    return await task.refresh()


def wrapper_of(task: Task) -> int:
    assert task.record.pid is not None
    return task.record.pid


@pytest.fixture(params=["1", "0"], ids=["cgroups", "no cgroups"])
def cgroups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_CGROUPS", request.param)


# The wrapper


@pytest.mark.usefixtures("cgroups")
@pytest.mark.parametrize("restart", [False, True], ids=["", "keeper killed too"])
async def test_a3_a_killed_wrapper_is_not_the_end_of_its_command(home: Path, restart: bool) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await sleeping(bb, "echo one; sleep {}; echo two", seconds)
        kill(wrapper_of(task))
        if restart:
            kill_keeper(home)

        await wait_until_async(lambda: has_said_something(task))
        assert task.state is State.RUNNING
        kill(*sleepers(seconds))
        await task.wait(30)
        assert (task.state, task.exit_code) == (State.FAILED, None)
        assert task.error is not None
        assert task.error.kind is ErrorKind.KILLED
        assert "two" in (await task.output()).text


@pytest.mark.usefixtures("cgroups")
@pytest.mark.parametrize("order", ["stop, then keeper", "keeper, then stop", "keeper alive"])
async def test_x2_what_a_killed_wrapper_left_running_can_be_stopped(home: Path, order: str) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await sleeping(bb, "sleep {} & wait", seconds)
        if order == "keeper alive":
            kill(wrapper_of(task))
        elif order == "keeper, then stop":
            kill_keeper(home)
            kill(wrapper_of(task))
        else:
            kill_all_of_ours(home)
            kill(wrapper_of(task))
        await task.stop(grace=2)
        assert task.state is State.CANCELED
        assert processes_with(seconds) == []


async def test_a5_what_a_killed_wrapper_left_running_is_limited(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"sleep {seconds} & wait", max_runtime=10)
        wait_until(lambda: sleepers(seconds))
        await task.refresh()
        kill(wrapper_of(task))
        await task.wait(30)
        assert task.error is not None
        assert task.error.kind is ErrorKind.TIMEOUT
        assert processes_with(seconds) == []


@pytest.mark.usefixtures("cgroups")
@pytest.mark.parametrize("when", ["while the keeper looks", "while nobody looks"])
async def test_a3_a_killed_group_is_killed_from_outside(home: Path, when: str) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await sleeping(bb, "echo one; sleep {} & wait", seconds)
        if when == "while nobody looks":
            kill_all_of_ours(home)
        os.killpg(wrapper_of(task), signal.SIGKILL)
        wait_until(lambda: not processes_with(seconds))
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert (task.state, task.exit_code) == (State.FAILED, None)
        assert task.error is not None
        assert task.error.kind is ErrorKind.KILLED
        assert task.record.leftovers == 0
        assert (await task.output()).text == "one\n"
        (told,) = await bb.session("s").told()
        assert told.record.kind is SignalKind.FAILED
        assert "killed" in told.text


@pytest.mark.usefixtures("cgroups")
@pytest.mark.parametrize("when", ["while it runs", "after its end"])
async def test_promise_5_a_job_whose_folder_is_deleted_is_not_run_again(
    home: Path, tmp_path: Path, when: str
) -> None:
    """What became of it cannot be known any more; that it never began is not to be concluded."""
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await sleeping(bb, f"echo ran >>{tmp_path}/ran; sleep {{}} & wait", seconds)
        kill_all_of_ours(home)
        if when == "after its end":
            os.killpg(wrapper_of(task), signal.SIGKILL)
            wait_until(lambda: not processes_with(seconds))
        shutil.rmtree(bb.home.attempt(task.id, 1).path)
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(task.id)
        if when == "while it runs":
            await keeper_comes(home)
            await wait_until_async(lambda: has_said_something(task))
            assert task.state is State.RUNNING
            kill(wrapper_of(task), *processes_with(seconds))
        await task.wait(30)
        assert task.state is State.FAILED
        assert task.record.attempt == 1
        assert (tmp_path / "ran").read_text() == "ran\n"


async def has_said_something(task: Task) -> bool:
    return (await task.refresh()).record.detail is not None


# A stop that nobody was there to hear


@pytest.mark.usefixtures("cgroups")
async def test_x2_a_stop_that_was_asked_for_while_no_keeper_lived_is_carried_out(
    home: Path,
) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await sleeping(bb, "sleep {}", seconds)
        kill_all_of_ours(home)
        with nobody_keeps(home):  # so that the request is on disk before anyone reads it
            await bb.store.request_stop(task.id, bb.session("s").scope, 1.0)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.state is State.CANCELED
        assert processes_with(seconds) == []


@pytest.mark.usefixtures("cgroups")
async def test_x2_a_stop_outlives_the_keeper_that_was_carrying_it_out(
    home: Path, tmp_path: Path
) -> None:
    """Killed in the middle of the grace; the next keeper goes on."""
    seconds = unique_seconds()
    heard = tmp_path / "heard"
    async with Backburner.open(home) as bb:
        line = f"trap 'touch {heard}' TERM; while :; do sleep {{}}; done"
        task = await sleeping(bb, line, seconds)
        await bb.store.request_stop(task.id, bb.session("s").scope, 2.0)
        wait_until(heard.exists)
        kill_keeper(home)
        await task.wait(30)
        assert task.state is State.CANCELED
        assert processes_with(seconds) == []


# A job that calls


CALLER = """
import asyncio, sys
from backburner import Backburner
async def main():
    async with Backburner.open(sys.argv[1]) as bb:
        task = await bb.session("inner").run("sleep " + sys.argv[2])
        await task.wait()
asyncio.run(main())
"""


def caller(home: Path, seconds: str) -> str:
    return shlex.join([sys.executable, "-c", CALLER, str(home), seconds])


@pytest.mark.usefixtures("cgroups")
@pytest.mark.parametrize("which", ["its own home", "another home"])
async def test_x2_a_keeper_that_a_job_has_started_survives_the_stop_of_that_job(
    new_home: Callable[[], Path], which: str
) -> None:
    home = new_home()
    inner = home if which == "its own home" else new_home()
    flag, seconds = unique_seconds(), unique_seconds()
    async with Backburner.open(home) as bb:
        # It waits for the death of its keeper, and then calls one itself.
        outer = await bb.session("s").run(f"sleep {flag}; {caller(inner, seconds)}")
        wait_until(lambda: sleepers(flag))
        kill_all_of_ours(home)
        kill(*sleepers(flag))
        wait_until(lambda: sleepers(seconds))
        keeper = wait_for_keeper(inner)
        # The job may not have heard yet that it has started one.
        ((task_id,),) = rows(inner, "SELECT id FROM task WHERE session = 'inner'")
        if which == "another home":
            call = await bb.session("s").run("true")  # its own keeper is back with this
            await call.wait(30)
        await outer.stop(force=True)
        assert outer.state is State.CANCELED
        assert is_running(keeper)
        assert keeper_of(inner) == keeper
        assert sleepers(seconds), "a task of its own is not part of the job that started it"
    async with Backburner.open(inner) as bb:
        task = await bb.session("inner").task(task_id)
        assert task.state is State.RUNNING
        assert task.record.parent == outer.id
        await task.stop(force=True)
        assert task.state is State.CANCELED
    assert processes_with(seconds) == []


# A reboot


def as_after_a_reboot(home: Path) -> None:
    """The record of everything that ran is of another boot."""
    rows(home, "UPDATE task SET boot_id = 'another boot' WHERE boot_id IS NOT NULL")


async def test_e11_after_a_reboot_what_ran_is_orphaned_and_told(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await sleeping(bb, "echo one; sleep {} & wait", seconds)
        kill_all_of_ours(home)
        os.killpg(wrapper_of(task), signal.SIGKILL)
        wait_until(lambda: not processes_with(seconds))
    as_after_a_reboot(home)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.state is State.FAILED
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED
        assert "restarted" in task.error.message
        assert (await task.output()).text == "one\n"
        (told,) = await bb.session("s").told()
        assert told.record.kind is SignalKind.FAILED
        assert "died" in told.text


async def test_e11_after_a_reboot_a_code_on_disk_is_still_the_truth(
    home: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"until [ -e {go} ]; do sleep 0.05; done; exit 12")
        folder = bb.home.attempt(task.id, 1)
        wait_until(lambda: has_begun(folder))
        kill_all_of_ours(home)
        go.touch()
        wait_until(lambda: isinstance(inspect(folder), Ended))
    as_after_a_reboot(home)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.exit_code == 12


async def test_e11_after_a_reboot_no_process_of_the_new_boot_is_touched(home: Path) -> None:
    """Whatever pid the record names, and whatever the process looks like."""
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await sleeping(bb, "sleep {} & wait", seconds)
        kill_all_of_ours(home)
        await bb.store.request_stop(task.id, bb.session("s").scope, 0.0)
    as_after_a_reboot(home)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.state.terminal
        assert sleepers(seconds)
    kill(wrapper_of(task), *processes_with(seconds))


async def test_e11_after_a_reboot_what_waited_is_started(home: Path) -> None:
    async with Backburner.open(home) as bb:
        with nobody_keeps(home):
            task = await bb.session("s").run("exit 13")
    as_after_a_reboot(home)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.exit_code == 13


async def test_e11_after_a_reboot_nothing_is_left_behind(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").run(f"sleep {seconds} & disown")).wait(30)
        assert task.record.leftovers == 1
        kill_all_of_ours(home)
        kill(*processes_with(seconds))
    as_after_a_reboot(home)
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(task.id)
        await keeper_comes(home)

        async def none_left() -> bool:
            return (await task.refresh()).record.leftovers == 0

        await wait_until_async(none_left)
        assert task.state is State.SUCCEEDED


# What is left behind


@pytest.mark.usefixtures("cgroups")
@pytest.mark.parametrize("restart", [False, True], ids=["", "keeper killed"])
async def test_x2_what_a_job_leaves_behind_is_said_and_can_be_stopped_later(
    home: Path, restart: bool
) -> None:
    seconds = unique_seconds()
    line = f"echo one; (sleep {seconds}; echo never) & env -i setsid -f sleep {seconds}; exit 3"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        task = await (await session.run(line)).wait(30)
        assert task.exit_code == 3
        wait_until(lambda: len(sleepers(seconds)) == 2)
        assert task.record.leftovers >= 2
        (told,) = await session.told()
        assert told.record.data["leftovers"] == task.record.leftovers
        if restart:
            kill_keeper(home)
        await task.stop(grace=2)
        assert task.exit_code == 3  # A4: its real record
        assert task.record.leftovers == 0
        assert processes_with(seconds) == []
        assert len(await session.told()) == 1


@pytest.mark.usefixtures("cgroups")
@pytest.mark.parametrize("restart", [False, True], ids=["", "keeper killed"])
async def test_x2_the_end_of_what_was_left_behind_is_noticed(home: Path, restart: bool) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await (
            await bb.session("s").run(f"(sleep {seconds}; echo late) 2>&- & disown")
        ).wait(30)
        wait_until(lambda: sleepers(seconds))
        if restart:
            kill_keeper(home)
        kill(*sleepers(seconds))

        async def none_left() -> bool:
            return (await task.refresh()).record.leftovers == 0

        await wait_until_async(none_left)
        assert (await task.output()).text == "late\n"
        kinds = [event.kind async for event in task.events(follow=False)]
        assert kinds.count(EventKind.FINISHED) == 1
        assert EventKind.LEFTOVERS in kinds
