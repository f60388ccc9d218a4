"""D1 to D8: a call returns within its budget, or goes on as a task; it is never cut off."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from backburner import (
    Backburner,
    Context,
    LimitReached,
    Settings,
    State,
    StoreClosed,
    Task,
    ToolError,
    UsageError,
)
from backburner.model.states import ACTIVE
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


class Gate:
    """Lets calls wait until the test says so."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.entered = 0
        self.left = 0
        self.cancelled = 0

    async def pass_through(self) -> str:
        self.entered += 1
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.left += 1
        return "through"


def with_gate(bb: Backburner, **options: float | None) -> Gate:
    gate = Gate()

    @bb.tool(**options)  # type: ignore[arg-type]  # one option at a time
    async def wait_at_gate() -> str:
        return await gate.pass_through()

    return gate


def written_tasks(home: Path) -> list[str]:
    tasks = home / "tasks"
    return sorted(os.listdir(tasks)) if tasks.exists() else []


async def test_d1_inside_the_budget_the_result_comes_back_and_nothing_is_written(
    home: Path,
) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool
        async def double(context: Context, n: int) -> int:
            return n * 2

        changes = await bb.store.last_event()
        session = bb.session("s")
        outcome = await session.invoke("double", {"n": 21})
        assert (outcome.parked, outcome.result, outcome.success) == (False, 42, True)
        assert await session.tasks() == []
        assert await bb.store.last_event() == changes
        assert await bb.store.workers() == []
        assert written_tasks(home) == []


async def test_d1_a_tool_has_600_seconds_unless_it_says_otherwise(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool
        async def plain() -> None: ...

        @bb.tool(budget=None)
        async def patient() -> None: ...

        assert bb.registry.get("plain").budget == 600
        assert bb.registry.get("patient").budget is None
        assert not (await bb.session("s").invoke("patient")).parked


async def test_d2_past_the_budget_the_call_is_parked_and_goes_on(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate = with_gate(bb)
        session = bb.session("s")
        outcome = await session.invoke("wait_at_gate", budget=0.01)
        assert outcome.parked
        told = outcome.document()
        assert told.keys() == {"type", "tool", "timeout_seconds", "background_id", "message"}
        assert (told["type"], told["tool"], told["timeout_seconds"]) == (
            "background", "wait_at_gate", 0.01,
        )  # fmt: skip
        task = await session.task(told["background_id"])
        assert (task.state, task.record.parked_at is not None) == (State.RUNNING, True)
        gate.open.set()
        await task.wait(30)
        assert (task.state, task.result, gate.entered, gate.cancelled) == (
            State.SUCCEEDED, "through", 1, 0,
        )  # fmt: skip
        (signal,) = [signal async for signal in session.signals(follow=False)]
        assert signal.task == task.id


async def test_d2_what_it_said_before_it_was_parked_is_kept(home: Path) -> None:
    async with Backburner.open(home) as bb:
        go_on = asyncio.Event()

        @bb.tool
        async def talks(context: Context) -> None:
            context.status("halfway")
            context.output("stdout", "first\n")
            context.progress(1, 2, unit="steps")
            print("printed")
            await go_on.wait()
            context.output("stderr", "second\n")

        task = (await bb.session("s").invoke("talks", budget=0.05)).task
        await wait_until_async(lambda: _has_detail(task, "halfway"))
        assert task.record.progress is not None
        assert (task.record.progress.current, task.record.progress.total) == (1, 2)
        assert (await task.output()).text == "[stdout] first\n[stdout] printed\n"
        go_on.set()
        await task.wait(30)
        text = (await task.output()).text
        assert text == "[stdout] first\n[stdout] printed\n[stderr] second\n"


async def _has_detail(task: Task, text: str) -> bool:
    await task.refresh()
    return task.record.detail == text


async def test_d3_an_exception_is_an_error_with_its_type_and_text(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool
        async def breaks() -> None:
            raise ValueError("no such crate")

        @bb.tool
        async def refuses() -> None:
            raise ToolError("choose another one")

        session = bb.session("s")
        for name, text in (("breaks", "ValueError: no such crate"), ("refuses", "choose another")):
            outcome = await session.invoke(name)
            assert not outcome.success
            assert text in (outcome.error or "")


async def test_d4_a_call_that_ended_before_it_was_stopped_keeps_its_result(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate = with_gate(bb)
        task = (await bb.session("s").invoke("wait_at_gate", budget=0)).task
        gate.open.set()
        await wait_until_async(lambda: gate.left == 1)
        await task.stop()
        assert (task.state, task.result) == (State.SUCCEEDED, "through")


async def test_d4_a_stopped_call_is_cancelled_and_stays_so(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool
        async def stubborn() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "I went on all the same"
            return "never"

        task = (await bb.session("s").invoke("stubborn", budget=0.01)).task
        await task.stop()
        assert (task.state, task.result) == (State.CANCELED, None)
        assert "stopped on request" in (await task.output()).text


async def test_d5_parked_calls_are_listed_and_reading_a_result_keeps_it(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate = with_gate(bb)
        session = bb.session("s")
        parked = [(await session.invoke("wait_at_gate", budget=0)).task.id for _ in range(3)]
        assert [task.id for task in await session.tasks(states=ACTIVE)] == parked[::-1]
        gate.open.set()
        for task_id in parked:
            for _ in range(2):
                task = await session.task(task_id)
                assert (await task.wait(30)).result == "through"


async def test_d6_a_caller_that_goes_away_takes_its_call_along(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate = with_gate(bb)
        session = bb.session("s")
        caller = asyncio.create_task(session.invoke("wait_at_gate", budget=100))
        await wait_until_async(lambda: gate.entered)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert (gate.cancelled, gate.left) == (1, 0)
        assert await session.tasks() == []


async def test_d6_a_caller_that_goes_away_after_parking_takes_nothing_along(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate = with_gate(bb)
        session = bb.session("s")
        caller = asyncio.create_task(session.invoke("wait_at_gate", budget=0))
        await wait_until_async(session.tasks)  # the moment in which it is on disk
        caller.cancel()
        await asyncio.wait([caller])
        gate.open.set()
        (task,) = await session.tasks()
        await task.wait(30)
        assert (task.state, gate.cancelled) == (State.SUCCEEDED, 0)


async def test_d7_above_the_limit_of_parked_calls_the_next_one_is_not_made(home: Path) -> None:
    settings = Settings(parked_per_session=3)
    async with Backburner.open(home, settings=settings) as bb:
        gate = with_gate(bb)
        session = bb.session("s")
        parked = [(await session.invoke("wait_at_gate", budget=0)).task for _ in range(3)]
        with pytest.raises(LimitReached, match="3 parked calls, and 3 is the limit"):
            await session.invoke("wait_at_gate", budget=5)
        assert gate.entered == 3
        other = await bb.session("other").invoke("wait_at_gate", budget=0)
        assert other.parked, "the limit is a session's own"
        await parked[0].stop()
        assert (await session.invoke("wait_at_gate", budget=0)).parked
        assert {task.state for task in await session.tasks(limit=9)} == {
            State.RUNNING, State.CANCELED,
        }  # fmt: skip
        gate.open.set()


def test_d7_the_limit_is_32_unless_told() -> None:
    assert Settings().parked_per_session == 32


async def test_a_tool_may_be_on_record_from_the_start(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(record=True)
        async def important() -> int:
            return 7

        session = bb.session("s")
        assert (await session.invoke("important")).result == 7
        (task,) = await session.tasks()
        await task.wait(30)
        assert (task.result, task.record.parked_at) == (7, None)


async def test_a_budget_below_zero_is_refused(home: Path) -> None:
    async with Backburner.open(home) as bb:
        with_gate(bb)
        with pytest.raises(UsageError, match="budget"):
            await bb.session("s").invoke("wait_at_gate", budget=-1)


@pytest.mark.parametrize("value", [float("nan"), b"x", {1, 2}, object()])
async def test_d2_what_could_not_be_put_on_record_is_refused_before_it_runs(
    home: Path, value: object
) -> None:
    async with Backburner.open(home) as bb:
        ran = False

        @bb.tool
        async def takes(x: Any) -> None:
            nonlocal ran
            ran = True

        with pytest.raises(UsageError):
            await bb.session("s").invoke("takes", {"x": value}, budget=1)
        assert not ran


async def test_d7_calls_that_started_together_are_not_all_parked(home: Path) -> None:
    async with Backburner.open(home, settings=Settings(parked_per_session=3)) as bb:
        gate = with_gate(bb)
        session = bb.session("s")
        calls = [asyncio.create_task(session.invoke("wait_at_gate", budget=0)) for _ in range(6)]
        await wait_until_async(lambda: sum(call.done() for call in calls) == 3)
        assert await bb.store.parked(session.scope) == 3
        gate.open.set()
        outcomes = await asyncio.gather(*calls)
        assert [outcome.parked for outcome in outcomes].count(True) == 3
        assert gate.left == 6, "none was cut off"
        assert {outcome.result for outcome in outcomes if not outcome.parked} == {"through"}


async def test_x2_a_home_that_closes_ends_the_calls_within_their_budget(home: Path) -> None:
    async with Backburner.open(home) as bb:
        gate = with_gate(bb)
        call = asyncio.create_task(bb.session("s").invoke("wait_at_gate", budget=100))
        await wait_until_async(lambda: gate.entered)
    with pytest.raises(StoreClosed):
        await call
    assert gate.cancelled == 1
