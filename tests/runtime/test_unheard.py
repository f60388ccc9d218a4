"""X2, E4, D6, E12: who gives up before hearing that a write is on disk leaves nothing half done.

`tests.unheard` makes that moment as long as it takes.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner, Context, Settings, State, UsageError
from backburner.model.errors import StoreAway
from backburner.model.states import ErrorKind
from tests.faults.homes import waiting_starts
from tests.faults.victims import nobody_keeps, unique_seconds
from tests.unheard import cancel_unheard, in_record, until_unheard
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

_TASK = "SELECT 1 FROM task WHERE id = 'bg_unheard'"


async def test_e2_a_run_that_is_on_disk_runs(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def count() -> int:
            return 3

        session = bb.session("s")
        spawning = session.spawn("count", id="bg_unheard")
        await cancel_unheard(spawning, lambda: in_record(home, _TASK))
        task = await (await session.task("bg_unheard")).wait(30)
        assert (task.state, task.result) == (State.SUCCEEDED, 3)


async def test_e3_what_was_refused_takes_no_place(home: Path) -> None:
    settings = Settings(tools_per_session=5, tools_per_worker=1)
    async with Backburner.open(home, settings=settings) as bb:

        @bb.tool(background=True)
        async def count() -> int:
            return 3

        session = bb.session("s")
        await (await session.spawn("count", id="bg_first")).wait(30)
        for _ in range(3):
            same = await session.spawn("count", id="bg_first")
            assert same.state is State.SUCCEEDED
        assert (await (await session.spawn("count")).wait(30)).result == 3


async def test_x2_the_environment_of_a_start_that_was_refused_does_not_stay(home: Path) -> None:
    settings = Settings(shell_per_session=1)
    with nobody_keeps(home):
        async with Backburner.open(home, settings=settings) as bb:
            session = bb.session("s")
            first = await session.run(f"sleep {unique_seconds()}")
            left = waiting_starts(home)
            assert left == [first.id]
            await cancel_unheard(session.run("true"), lambda: len(waiting_starts(home)) == 2)
            assert waiting_starts(home) == left
            await first.stop(force=True)


async def test_e4_a_start_that_fails_at_once_leaves_its_result(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        starting = session.run("true", cwd=home / "missing", id="bg_unheard")
        await cancel_unheard(starting, lambda: in_record(home, _TASK))
        task = await session.task("bg_unheard")
        assert task.state is State.FAILED
        assert Path(task.document()["paths"]["result"]).exists()


async def test_e9_a_schedule_that_is_canceled_leaves_no_environment(home: Path) -> None:
    async with Backburner.open(home) as bb:
        schedule = await bb.session("s").schedule("0 0 1 1 *", "true")
        assert waiting_starts(home) == [schedule.id]
        canceled = "SELECT 1 FROM schedule WHERE state = 'canceled'"
        await cancel_unheard(schedule.cancel(), lambda: in_record(home, canceled))
        assert waiting_starts(home) == []


async def test_e12_a_message_is_not_lost_with_whoever_gave_up_waiting_for_it(home: Path) -> None:
    async with Backburner.open(home) as bb:
        heard: list[str] = []

        @bb.tool(background=True)
        async def listen(context: Context) -> str:
            taken = "SELECT 1 FROM message WHERE taken IS NOT NULL"
            await cancel_unheard(context.receive(), lambda: in_record(home, taken))
            heard.append(await context.receive(timeout=30))
            return heard[0]

        session = bb.session("s")
        task = await session.spawn("listen")
        sending = asyncio.create_task(task.send("hello"))
        await task.wait(30)
        await sending
        assert task.result == "hello"


async def test_d6_who_goes_away_while_no_more_calls_can_be_parked_takes_the_call_along(
    home: Path,
) -> None:
    async with Backburner.open(home, settings=Settings(parked_per_session=1)) as bb:
        entered = cancelled = 0

        @bb.tool
        async def wait_for_ever() -> None:
            nonlocal entered, cancelled
            entered += 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled += 1
                raise

        session = bb.session("s")
        # Both begin while there is room; one of them finds none when its budget is spent.
        calls = [asyncio.create_task(session.invoke("wait_for_ever", budget=1)) for _ in range(2)]
        done, left = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert [each.result().parked for each in done] == [True]
        assert entered == 2
        (waiting,) = left

        async def refused() -> bool:
            (parked,) = await session.tasks()
            return parked.record.parked_at is not None and not waiting.done()

        await wait_until_async(refused)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await wait_until_async(lambda: cancelled == 1)
        (parked,) = await session.tasks()
        await parked.stop(force=True)
        assert cancelled == 2


async def test_x2_a_home_whose_closing_is_cancelled_is_closed(home: Path) -> None:
    bb = Backburner.open(home)
    await bb.__aenter__()
    ended = False

    @bb.tool(background=True)
    async def wait_for_ever() -> None:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(int)
            ended = True

    task = await bb.session("s").spawn("wait_for_ever")
    begun = "SELECT 1 FROM task WHERE state = 'running'"
    await until_unheard(lambda: in_record(home, begun))
    closing = asyncio.create_task(bb.__aexit__(None, None, None))
    await asyncio.to_thread(int)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert ended
    with pytest.raises(UsageError, match="is not open"):
        _ = bb.store
    async with Backburner.open(home) as again:
        found = await again.session("s").task(task.id)
        assert found.error is not None
        assert found.error.kind == "orphaned"


@pytest.mark.parametrize("then", ["left alone", "tried again", "cancelled"])
async def test_x2_a_begin_whose_answer_was_lost_is_ended_and_not_forgotten(
    home: Path, then: str
) -> None:
    """The record has it as running here, and nothing runs."""
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def count() -> int:
            return 3

        session, worker = bb.session("s"), bb.runs.worker
        begin, answered = worker.store.begin, asyncio.Event()

        def lose_the_answer(*order: Any, **more: Any) -> "asyncio.Future[Any]":
            written = begin(*order, **more)
            lost: asyncio.Future[Any] = type(written)(loop=asyncio.get_running_loop())

            async def answer() -> None:
                await written
                await answered.wait()
                lost.set_exception(StoreAway("the database was lost"))

            answering.append(asyncio.create_task(answer()))
            return lost

        answering: list[asyncio.Task[None]] = []
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(worker.store, "begin", lose_the_answer)
            spawning = asyncio.create_task(session.spawn("count", id="bg_unheard"))
            await wait_until_async(lambda: in_record(home, _TASK))
            if then == "cancelled":
                spawning.cancel()
            answered.set()
            with pytest.raises((StoreAway, asyncio.CancelledError)):
                await spawning
            await asyncio.gather(*answering)
        if then == "tried again":
            assert (await session.spawn("count", id="bg_unheard")).state is State.RUNNING
        await worker.follow_record()
        task = await (await session.task("bg_unheard")).wait(30)
        assert (task.state, task.error and task.error.kind) == (State.FAILED, ErrorKind.SPAWN)
