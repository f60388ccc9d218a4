"""A5: past its maximum run time a job is ended, whoever died and whatever the clock says."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, EventKind, Settings, SignalKind, State, Task
from backburner.keeper.keeper import Keeper
from backburner.model import clock
from backburner.model.home import Home
from backburner.model.limits import DEFAULT_GRACE_S
from backburner.runtime import job
from backburner.runtime.election import KeeperLock
from backburner.store.sqlite.store import open_store
from backburner.work.process.condition import Ended, inspect
from backburner.work.process.identity import boot_id
from tests.faults.record import set_start_back
from tests.faults.victims import (
    has_begun,
    kill_all_of_ours,
    kill_keeper,
    nobody_keeps,
    processes_with,
    sleepers,
    unique_seconds,
)
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow

LIMIT_S = 60
"""Longer than anybody here waits."""


async def seconds_between(task: Task, first: EventKind, second: EventKind) -> float:
    at = {event.kind: event.at async for event in task.events(follow=False)}
    return (at[second] - at[first]) / clock.SECOND


def assert_timed_out(task: Task) -> None:
    assert (task.state, task.exit_code) == (State.FAILED, None)
    assert task.error is not None
    assert task.error.kind is ErrorKind.TIMEOUT


async def test_a5_past_its_time_the_whole_tree_goes_and_the_session_is_told(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        task = await session.run(
            f"setsid env -i sleep {seconds} & sleep {seconds}", max_runtime=0.5
        )
        await task.wait(30)
        assert_timed_out(task)
        assert processes_with(seconds) == []
        assert await seconds_between(task, EventKind.STARTED, EventKind.ENDING) >= 0.5
        (told,) = await session.told()
        assert told.record.kind is SignalKind.FAILED
        assert "timed out" in told.text


async def test_a5_what_ignores_term_is_killed_after_the_grace(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"trap '' TERM; sleep {seconds}", max_runtime=LIMIT_S)
        wait_until(lambda: sleepers(seconds))  # so that it ignores it by now
        set_start_back(home, task.id, LIMIT_S)
        kill_keeper(home)
        await task.wait(30)
        assert_timed_out(task)
        assert processes_with(seconds) == []
        ended_in = await seconds_between(task, EventKind.ENDING, EventKind.FINISHED)
        assert ended_in >= DEFAULT_GRACE_S


async def test_a5_a_stop_may_be_more_urgent_than_the_grace_of_a_timeout(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "DEFAULT_GRACE_S", 3600)
    seconds = unique_seconds()
    async with keeper_in_this_process(home), Backburner.open(home) as bb:
        task = await bb.session("s").run(f"trap '' TERM; sleep {seconds}", max_runtime=0.5)
        async for event in task.events():
            if event.kind is EventKind.ENDING:
                break
        await task.stop(force=True)
        assert_timed_out(task)
        assert processes_with(seconds) == []


@pytest.mark.parametrize("who", ["the keeper", "keeper and guardian"])
async def test_a5_time_counts_from_the_start_and_not_from_the_adoption(
    home: Path, who: str
) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"sleep {seconds}", max_runtime=LIMIT_S)
        wait_until(lambda: sleepers(seconds))
        set_start_back(home, task.id, LIMIT_S - 2)
        if who == "the keeper":
            kill_keeper(home)
        else:
            kill_all_of_ours(home)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert_timed_out(task)
        assert processes_with(seconds) == []


async def test_a5_a_time_that_ran_out_while_nobody_looked_is_out_at_once(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"sleep {seconds}", max_runtime=LIMIT_S)
        wait_until(lambda: sleepers(seconds))
        kill_all_of_ours(home)
        set_start_back(home, task.id, LIMIT_S)
        assert sleepers(seconds)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert_timed_out(task)
        assert processes_with(seconds) == []


async def test_a5_a_job_that_ended_in_time_is_no_timeout_however_late_that_is_seen(
    home: Path, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with Backburner.open(home) as bb:
        line = f"until [ -e {go} ]; do sleep 0.05; done; exit 6"
        task = await bb.session("s").run(line, max_runtime=LIMIT_S)
        folder = bb.home.attempt(task.id, 1)
        wait_until(lambda: has_begun(folder), message="it runs not")
        kill_all_of_ours(home)
        with nobody_keeps(home):
            go.touch()
            wait_until(lambda: isinstance(inspect(folder), Ended))
            set_start_back(home, task.id, LIMIT_S)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.exit_code == 6


async def test_a2_no_limit_is_possible_and_an_hour_is_the_default(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        task = await (await session.run("true")).wait(30)
        assert task.record.max_runtime_s == 3600
        task = await (await session.run("true", max_runtime=None)).wait(30)
        assert task.record.max_runtime_s is None
        assert task.state is State.SUCCEEDED


# The clock


@contextlib.asynccontextmanager
async def keeper_in_this_process(home: Path) -> AsyncGenerator[Keeper]:
    """An application that is its own keeper, so that a test can set its clock."""
    lock = KeeperLock.acquire(Home(home))
    assert lock is not None
    store = open_store(home, boot_id())
    keeper = Keeper(Home(home), store, Settings())
    running = asyncio.create_task(keeper.run())
    try:
        yield keeper
    finally:
        keeper.leave()
        await running
        await store.close()
        lock.release()


async def has_started(task: Task) -> bool:
    return (await task.refresh()).record.started_at is not None


@pytest.mark.parametrize("jump", [-30 * 86400, 86400], ids=["back", "forward"])
async def test_a5_a_clock_that_is_set_changes_neither_limit_nor_record(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: int
) -> None:
    go = tmp_path / "go"
    real = clock.now
    async with keeper_in_this_process(home), Backburner.open(home) as bb:
        session = bb.session("s")
        limited = await session.run("sleep 3600", max_runtime=2)
        line = f"until [ -e {go} ]; do sleep 0.05; done; exit 8"
        other = await session.run(line, max_runtime=LIMIT_S)
        for task in (other, limited):
            await wait_until_async(lambda task=task: has_started(task))
        monkeypatch.setattr(clock, "now", lambda: real() + jump * clock.SECOND)
        go.touch()
        await other.wait(30)
        assert other.exit_code == 8
        await limited.wait(30)
        assert_timed_out(limited)
        for task in (other, limited):
            record = task.record
            assert record.started_at is not None
            assert record.finished_at is not None
            assert record.created_at <= record.started_at <= record.finished_at
        claimed = [signal.task async for signal in session.signals(follow=False)]
        assert sorted(claimed) == sorted([other.id, limited.id])
