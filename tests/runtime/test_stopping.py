"""A4: stop ends what runs, cancels what waits, and leaves alone what has ended."""

import asyncio
import os
import random
import signal
from pathlib import Path
from typing import Any, cast

import pytest

from backburner import Backburner, EventKind, NotFound, SignalKind, State, Task, UsageError
from backburner.work.process.condition import Ended, inspect
from tests.faults.victims import (
    keeper_comes,
    nobody_keeps,
    processes_with,
    sleepers,
    suspend,
    unique_seconds,
)
from tests.waiting import pause_async, wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


async def test_a4_what_waits_is_canceled_and_never_runs(home: Path, tmp_path: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        with nobody_keeps(home):
            task = await session.run(f"touch {tmp_path}/ran")
            assert task.state is State.QUEUED
            await task.stop()
            assert task.state is State.CANCELED
        await (await session.run("true")).wait(30)  # a keeper has been here
        assert not (tmp_path / "ran").exists()
        assert (await task.refresh()).state is State.CANCELED
        kinds = [event.kind async for event in task.events()]
        assert kinds == [EventKind.CREATED, EventKind.FINISHED]
        told = [signal for signal in await session.told() if signal.task == task.id]
        assert [signal.record.kind for signal in told] == [SignalKind.CANCELED]


async def test_a4_what_runs_is_ended_politely_and_says_so(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("polite")
        task = await session.run("trap 'echo bye; exit 0' TERM; echo up; sleep 3600 & wait")
        await said(task, "up")
        await task.stop(grace=20)
        assert (task.state, task.exit_code, task.error) == (State.CANCELED, None, None)
        assert (await task.output()).text == "up\nbye\n"
        (told,) = await session.told()
        assert told.record.kind is SignalKind.CANCELED


@pytest.mark.parametrize(
    "put",
    ["mv $d $d.x; : >$d", "rm $d/wrapper; mkdir $d/wrapper", "rm $d/wrapper; mkfifo $d/wrapper"],
)
async def test_x2_a_job_that_replaces_its_files_is_stopped_all_the_same(
    shared_home: Path, put: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        seconds = unique_seconds()
        task = await bb.session(put).run(
            f"d=$(dirname $BACKBURNER_REPORT); {put}; exec sleep {seconds}"
        )
        await wait_until_async(lambda: sleepers(seconds))
        await task.stop(force=True)
        assert task.state is State.CANCELED
        assert not processes_with(seconds)


async def said(task: Task, text: str) -> None:
    async def seen() -> bool:
        return text in (await task.output()).text

    await wait_until_async(seen)


async def test_a4_a_stop_right_after_the_start_is_heard_too(shared_home: Path) -> None:
    """Its shell outlives TERM: sent before the command is there, it would be lost on it."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session("right after")
        loop = asyncio.get_running_loop()

        async def stopped_after() -> float:
            task = await session.run(["sleep", "3600"])

            async def runs() -> bool:
                return (await task.refresh()).state is State.RUNNING

            await wait_until_async(runs)
            began = loop.time()
            await task.stop(grace=100)
            assert task.state is State.CANCELED
            return loop.time() - began

        took = [await stopped_after() for _ in range(8)]
        assert max(took) < 50, took


async def test_a4_force_does_not_ask(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("force").run("trap 'echo bye' TERM; echo up; sleep 3600 & wait")
        await said(task, "up")
        await task.stop(force=True)
        assert task.state is State.CANCELED
        assert (await task.output()).text == "up\n"


async def test_a4_a_more_urgent_stop_overtakes_the_first(shared_home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("urgent").run(f"trap '' TERM; sleep {seconds}")
        wait_until(lambda: sleepers(seconds))
        patient = asyncio.create_task((await bb.session("urgent").task(task.id)).stop(grace=60))
        await pause_async(0.2, because="the first one is to be under way")
        assert not patient.done()
        await task.stop(force=True)
        assert task.state is State.CANCELED
        assert (await patient).state is State.CANCELED
        assert processes_with(seconds) == []


async def test_a4_many_that_stop_the_same_all_get_the_same_answer(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("crowd")
        task = await session.run("sleep 3600")
        handles = [await session.task(task.id) for _ in range(10)]
        stopped = await asyncio.gather(*(handle.stop(force=True) for handle in handles))
        assert {handle.state for handle in stopped} == {State.CANCELED}
        assert len({handle.record.finished_at for handle in stopped}) == 1
        assert len(await session.told()) == 1


@pytest.mark.parametrize("line", ["exit 0", "exit 9", "kill -9 $$"])
async def test_a4_what_has_ended_keeps_its_record(shared_home: Path, line: str) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(f"ended {line}")
        task = await (await session.run(line)).wait(30)
        before = task.record
        events = [event async for event in task.events()]
        for force in (False, True):
            await task.stop(force=force)
            assert task.record == before
        assert [event async for event in task.events()] == events
        assert len(await session.told()) == 1


@pytest.mark.slow
async def test_a4_also_when_it_ended_a_moment_before(shared_home: Path, tmp_path: Path) -> None:
    """A race: whoever wins, the record says what happened, and says it for ever."""
    dice = random.Random(4)
    outcomes: set[State] = set()
    async with Backburner.open(shared_home) as bb:
        session = bb.session("race")

        async def race(turn: int, number: int) -> None:
            done = tmp_path / f"done{number}-{turn}"
            task = await session.run(f"sleep 0.{dice.randint(0, 5)}; echo end; : >{done}; exit 17")
            if number % 3 == 0:  # at its very end, however long it took to start
                await wait_until_async(done.exists)
            else:
                await pause_async(dice.uniform(0, 0.6), because="the stop comes at any moment")
            await task.stop(force=dice.random() < 0.5, grace=5)
            outcomes.add(task.state)
            if task.state is State.CANCELED:
                assert task.exit_code is None
            else:
                assert (task.state, task.exit_code) == (State.FAILED, 17)
                assert done.exists()
                assert (await task.output()).text == "end\n"
            record = task.record
            await task.stop(force=True)
            assert (await task.refresh()).record == record

        for turn in range(6):
            await asyncio.gather(*(race(turn, number) for number in range(25)))
        assert len(await session.told(limit=1000)) == 150
    assert outcomes == {State.CANCELED, State.FAILED}, "the stops came all too early or too late"


async def task_runs(bb: Backburner, task: Task) -> None:
    """Its command was started: the wrapper's file is there before, and empty until then."""
    wrapper = Path(bb.home.attempt(task.id, 1).wrapper)
    await wait_until_async(lambda: wrapper.exists() and wrapper.read_text().strip())


async def test_a4_an_end_that_nobody_has_seen_yet_counts(home: Path, tmp_path: Path) -> None:
    """The exit code is on disk before the stop is asked for; only the keeper does not know yet."""
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; exit 7")
        await task_runs(bb, task)
        keeper = await keeper_comes(home)
        suspend(home, keeper)
        try:
            (tmp_path / "go").touch()
            folder = bb.home.attempt(task.id, 1)
            await wait_until_async(lambda: isinstance(inspect(folder), Ended))
            stopping = asyncio.create_task(task.stop(force=True))

            async def asked_for() -> bool:
                record = await bb.store.get(task.id)
                return record is not None and record.stop is not None

            await wait_until_async(asked_for)
        finally:
            os.kill(keeper, signal.SIGCONT)
        await stopping
        assert (task.state, task.exit_code) == (State.FAILED, 7)


async def test_a4_an_unknown_id_is_not_found(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("unknown")
        with pytest.raises(NotFound):
            await session.task("bg_0000000000000000")
        with pytest.raises(NotFound):
            await bb.tasks.stop("bg_0000000000000000", session.scope)


async def test_a_grace_below_nothing_is_refused(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await (await bb.session("grace").run("true")).wait(30)
        with pytest.raises(UsageError):
            await task.stop(grace=-1)


@pytest.mark.parametrize("grace", [float("nan"), float("inf"), -1, "5", None])
async def test_a_grace_that_is_no_time_is_a_mistake(shared_home: Path, grace: Any) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("graces")
        task = await session.run("true")
        with pytest.raises(UsageError, match="the grace must be"):
            await task.stop(grace=grace)
        with pytest.raises(UsageError, match="the grace must be"):
            await session.stop(task.id, grace=grace)
        with pytest.raises(UsageError, match="is a text"):
            await task.send(cast("Any", 5))
        await task.wait(30)


@pytest.mark.parametrize("start", ["run", "call", "spawn", "ask"])
async def test_a_title_that_is_no_text_is_a_mistake(shared_home: Path, start: str) -> None:
    async with Backburner.open(shared_home) as bb:

        @bb.tool(background=True)
        def echo() -> None: ...

        session = bb.session("titles")
        first = {"run": "true", "call": "os:getcwd", "spawn": "echo", "ask": "Hello"}[start]
        with pytest.raises(UsageError, match="a title is a text"):
            await getattr(session, start)(first, title=5)
        assert await session.tasks() == []
