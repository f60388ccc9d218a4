"""One keeper for a home: elected by a lock, brought back when it dies, gone when not needed."""

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backburner import Backburner, EventKind, State, Task
from backburner.model.home import Home
from backburner.runtime.election import call_keeper, start_detached
from backburner.work.process.cgroup import LAUNCHER
from tests.faults.victims import (
    arguments_of,
    children_of,
    guardians_of,
    is_running,
    keeper_comes,
    keeper_of,
    keepers_of,
    kill,
    kill_all_of_ours,
    kill_keeper,
    let_keepers_leave,
    nobody_keeps,
    processes_with,
    sleepers,
    take_away,
    unique_seconds,
    wait_for_keeper,
)
from tests.waiting import pause_async, wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


def call_guardian(home: Path) -> None:
    """Start a guardian, whether there is one or not."""
    start_detached([sys.executable, "-m", "backburner.keeper.guardian", str(home)], Home(home))


async def run_under_one_guardian(bb: Backburner, *lines: str) -> tuple[list[Task], int]:
    """The tasks, and the guardian: where a start takes long, its application calls a second."""
    with nobody_keeps(bb.home.root):
        tasks = [await bb.session("s").run(line) for line in lines]
    call_guardian(bb.home.root)
    wait_for_keeper(bb.home.root)
    (guardian,) = guardians_of(bb.home.root)
    return tasks, guardian


def only_one_of_each(home: Path) -> bool:
    return len(keepers_of(home)) == 1 and len(guardians_of(home)) == 1


async def adopted(task: Task) -> None:
    """Wait until a later keeper has said that it looks after the task."""

    async def said() -> bool:
        kinds = [event.kind async for event in task.events(follow=False)]
        return EventKind.ADOPTED in kinds

    await wait_until_async(said)


# Two never act


@pytest.mark.slow
async def test_of_twenty_keepers_one_remains_and_every_job_runs_once(
    home: Path, tmp_path: Path
) -> None:
    """Promise 5: nothing runs twice."""
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        with nobody_keeps(home):
            tasks = [await session.run(f"echo {number} >>{tmp_path}/ran") for number in range(20)]
        for _ in range(20):
            call_guardian(home)
        for task in tasks:
            await task.wait(60)
            assert task.state is State.SUCCEEDED
        wait_until(lambda: only_one_of_each(home), message="more than one is left")
        ran = (tmp_path / "ran").read_text().split()
        assert sorted(ran, key=int) == [str(number) for number in range(20)]
        for task in tasks:
            kinds = [event.kind async for event in task.events(follow=False)]
            assert kinds == [EventKind.CREATED, EventKind.STARTED, EventKind.FINISHED]


@pytest.mark.slow
async def test_a_job_does_not_hold_the_lock_of_its_dead_keeper(home: Path) -> None:
    """An flock would be held by what was forked; then no other keeper could be elected."""
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run("sleep 3600")
        dead = kill_keeper(home)
        wait_for_keeper(home, other_than=dead)
        await task.stop(force=True)


# Brought back


@pytest.mark.slow
async def test_x2_the_guardian_brings_a_killed_keeper_back_again_and_again(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        line = f"echo begun; exec 2>&-; sleep {seconds} & wait; exit 4"
        (task,), guardian = await run_under_one_guardian(bb, line)
        wait_until(lambda: sleepers(seconds))
        keeper = None
        for _ in range(3):
            keeper = wait_for_keeper(home, other_than=keeper)
            kill(keeper)
        wait_for_keeper(home, other_than=keeper)
        assert guardians_of(home) == [guardian]
        await adopted(task)
        kill(*sleepers(seconds))
        await task.wait(30)
        assert task.exit_code == 4
        assert (await task.output()).text == "begun\n"
        kinds = [event.kind async for event in task.events(follow=False)]
        assert kinds.count(EventKind.STARTED) == kinds.count(EventKind.FINISHED) == 1


async def test_x2_a_killed_guardian_is_replaced_and_guards(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        (task,), guardian = await run_under_one_guardian(bb, f"sleep {seconds}")
        keeper = wait_for_keeper(home)
        for _ in range(2):
            kill(guardian)
            (guardian,) = wait_until(lambda: guardians_of(home), message="no new guardian")
            assert keeper_of(home) == keeper
        kill(keeper)
        wait_for_keeper(home, other_than=keeper)
        await task.stop(force=True)
        assert task.state is State.CANCELED
        assert processes_with(seconds) == []


async def test_x2_with_both_killed_the_job_goes_on_and_the_next_open_brings_them_back(
    home: Path,
) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(
            f"exec 2>&-; echo one; sleep {seconds} & wait; echo two; exit 7"
        )
        wait_until(lambda: sleepers(seconds))
        kill_all_of_ours(home)
        assert (await task.output()).text == "one\n"  # readable also while nobody keeps it
    assert sleepers(seconds)
    async with Backburner.open(home) as bb:
        await keeper_comes(home)
        kill(*sleepers(seconds))
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.exit_code == 7
        assert (await task.output()).text == "one\ntwo\n"
        assert [signal.task for signal in await bb.session("s").told()] == [task.id]


@pytest.mark.slow
async def test_x2_a_job_that_ended_while_nobody_looked_is_told_by_the_next_keeper(
    home: Path,
) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"sleep {seconds} & wait; exit 9")
        wait_until(lambda: sleepers(seconds))
        kill_all_of_ours(home)
        kill(*sleepers(seconds))
        pid = task.record.pid or (await task.refresh()).record.pid
        assert pid is not None
        wait_until(lambda: not is_running(pid))
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.exit_code == 9
        assert [signal.task for signal in await bb.session("s").told()] == [task.id]


@pytest.mark.slow
async def test_x2_a_task_that_is_started_right_after_both_were_killed_is_not_stuck(
    home: Path,
) -> None:
    """The process that starts it has called a keeper a moment before, which is dead now."""
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        for _ in range(3):
            await (await session.run("true")).wait(30)
            kill_all_of_ours(home)
            task = await session.run("true")
            await task.wait(30)
            assert task.state is State.SUCCEEDED


@pytest.mark.slow
async def test_x2_a_task_that_was_on_its_way_when_both_were_killed_is_carried_out(
    home: Path, tmp_path: Path
) -> None:
    """Queued on disk, its hand-over too: the next keeper starts it, once."""
    async with Backburner.open(home) as bb:
        with nobody_keeps(home):
            task = await bb.session("s").run(f"echo ran >>{tmp_path}/ran")
    assert keeper_of(home) is None
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.state is State.SUCCEEDED
        assert (tmp_path / "ran").read_text() == "ran\n"


# Leaving


@pytest.mark.slow
async def test_a_keeper_with_nothing_to_do_leaves_and_its_guardian_too(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_KEEPER_IDLE_S", "1")
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        seconds = unique_seconds()
        task = await session.run(f"sleep {seconds}")
        keeper = wait_for_keeper(home)
        await pause_async(3, because="a keeper that has a job must not leave, idle time or not")
        assert keeper_of(home) == keeper
        await task.stop(force=True)
        wait_until(lambda: keeper_of(home) is None)
        wait_until(lambda: not keepers_of(home) and not guardians_of(home))
        task = await session.run("exit 3")  # and comes back when there is something
        await task.wait(30)
        assert task.exit_code == 3


@pytest.mark.slow
async def test_a_keeper_does_not_leave_while_processes_are_left_behind(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_KEEPER_IDLE_S", "0.1")
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").run(f"sleep {seconds} & disown")).wait(30)
        assert task.record.leftovers == 1
        keeper = wait_for_keeper(home)
        await pause_async(2.5, because="it must not leave in this time")
        assert keeper_of(home) == keeper
        await task.stop()
        assert processes_with(seconds) == []
        wait_until(lambda: not keepers_of(home))


@pytest.mark.slow
async def test_a_task_that_is_created_while_a_keeper_leaves_is_not_stuck(
    new_home: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started at moments around the one at which an idle keeper leaves, ever closer to it."""
    monkeypatch.setenv("BACKBURNER_KEEPER_IDLE_S", "0.001")
    was_there: list[bool] = []

    async def try_moments(home: Path) -> None:
        there, left = 0.0, None  # between these it leaves
        moment = 1.0
        async with Backburner.open(home) as bb:
            session = bb.session("s")
            for _ in range(7):
                await (await session.run("true")).wait(30)
                await pause_async(moment, because="the keeper leaves about now")
                was_there.append(keeper_of(home) is not None)
                if was_there[-1]:
                    there = max(there, moment)
                else:
                    left = moment
                moment = 2 * there if left is None else (there + left) / 2
                task = await session.run("true")
                await task.wait(30)
                assert task.state is State.SUCCEEDED

    await asyncio.gather(*(try_moments(new_home()) for _ in range(4)))
    assert set(was_there) == {True, False}, "every moment lay on the same side of the one meant"


@pytest.mark.slow
async def test_x2_a_home_that_vanishes_takes_its_jobs_and_its_keeper_along(home: Path) -> None:
    """Nobody could watch or stop them any more."""
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await session.run(f"trap '' TERM; sleep {seconds}")
        await session.run(f"env -i setsid sleep {seconds}")
        await session.run(f"sleep {seconds} & disown")
        wait_until(lambda: len(sleepers(seconds)) == 3)
    take_away(home)
    wait_until(lambda: not processes_with(seconds))
    wait_until(lambda: not keepers_of(home) and not guardians_of(home))


@pytest.mark.slow
async def test_x2_a_home_that_is_made_anew_at_once_does_not_hide_that_the_old_one_is_gone(
    home: Path,
) -> None:
    """Deleted and used again within a second: the jobs of the old one belong to nobody."""
    old, new = unique_seconds(), unique_seconds()
    async with Backburner.open(home) as bb:
        await bb.session("s").run(f"sleep {old}", max_runtime=None)
        wait_until(lambda: sleepers(old))
        old_keeper = wait_for_keeper(home)
    take_away(home)
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"sleep {new}")
        await wait_until_async(lambda: sleepers(new))
        await wait_until_async(lambda: not processes_with(old))
        # It may become the keeper of the new one: somebody has to.
        await wait_until_async(lambda: not is_running(old_keeper) or keeper_of(home) == old_keeper)
        assert sleepers(new)
        await task.stop(force=True)
        assert task.state is State.CANCELED


@pytest.mark.slow
async def test_a3_a_keeper_that_is_told_to_leave_leaves_the_jobs_alone(home: Path) -> None:
    """SIGTERM, as at the end of a login session; the next keeper adopts them."""
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"sleep {seconds} & wait; exit 5")
        wait_until(lambda: sleepers(seconds))
        wait_for_keeper(home)
        let_keepers_leave(home)
    assert sleepers(seconds)
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(task.id)
        await adopted(task)
        kill(*sleepers(seconds))
        await task.wait(30)
        assert task.exit_code == 5


async def test_opening_a_home_without_work_starts_nobody(home: Path) -> None:
    async with Backburner.open(home) as bb:
        await bb.session("s").tasks()
        await bb.session("s").run(["no-such-program-here"])
    assert keepers_of(home) == guardians_of(home) == []


# Tidy


@pytest.mark.slow
async def test_a_keeper_collects_its_jobs_and_keeps_no_descriptor(home: Path) -> None:
    """Also when a stop came in the very moment of the end."""
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await (await session.run("true")).wait(30)
        keeper = wait_for_keeper(home)
        before = len(os.listdir(f"/proc/{keeper}/fd"))

        async def one(number: int) -> None:
            task = await session.run("true" if number % 2 else "sleep 0.0")
            await (task.stop(force=True) if number % 3 else task.wait(30))

        for _ in range(5):
            await asyncio.gather(*(one(number) for number in range(30)))

        def zombies() -> list[int]:
            return [pid for pid in children_of(keeper) if LAUNCHER not in arguments_of(pid)]

        wait_until(lambda: not zombies(), message=lambda: f"zombies: {zombies()}")
        of_launcher = 2  # it may have come after the first job
        wait_until(lambda: len(os.listdir(f"/proc/{keeper}/fd")) <= before + of_launcher)


@pytest.mark.slow
async def test_jobs_of_a_dead_keeper_are_collected_by_the_guardian(home: Path) -> None:
    async with Backburner.open(home) as bb:
        tasks, guardian = await run_under_one_guardian(bb, *["sleep 3600"] * 5)
        # Before this application has a turn: it might call another guardian, with a keeper.
        keeper = wait_for_keeper(home, other_than=kill_keeper(home))
        for task in tasks:
            await task.stop(force=True)
        wait_until(lambda: children_of(guardian) == [keeper])


@pytest.mark.slow
async def test_a_call_is_heard_though_the_last_one_was_a_moment_ago(home: Path) -> None:
    """The guard against calling twice must not swallow a call that matters."""
    async with Backburner.open(home) as bb:
        call_keeper(bb.home)
        first = wait_for_keeper(home)
        kill_all_of_ours(home)
        call_keeper(bb.home)
        assert await keeper_comes(home) != first
