"""E12: a run asks and is answered, is sent messages, and tells; within a budget too."""

import asyncio
from pathlib import Path

import pytest

from backburner import (
    Backburner,
    BlockingContext,
    Context,
    Session,
    State,
    Task,
    TimeIsUp,
    UsageError,
)
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


async def test_e12_a_run_asks_waits_and_goes_on_with_its_answer(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def asks(context: Context) -> list[object]:
            plain = await context.ask("Which one?")
            number = await context.ask("How many?", schema={"type": "integer"})
            return [plain, number]

        task = await bb.session("s").spawn("asks")
        await wait_until_async(lambda: _asks(task, "Which one?"))
        await task.send("the red one")
        await wait_until_async(lambda: _asks(task, "How many?"))
        with pytest.raises(UsageError):
            await task.send("a few")
        await task.send("3")
        await task.wait(30)
        assert task.result == ["the red one", 3]


async def _asks(task: Task, text: str) -> bool:
    await task.refresh()
    question = task.record.question
    return task.state is State.INPUT_REQUIRED and question is not None and question.text == text


async def test_e12_a_question_has_a_time_limit(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def asks(context: Context) -> str:
            try:
                return await context.ask("Anyone?", timeout=0.05)
            except TimeIsUp:
                return "nobody"

        task = await bb.session("s").spawn("asks")
        await task.wait(30)
        assert task.result == "nobody"
        assert not [question for question in await task.questions() if question.open]


async def test_e12_messages_go_both_ways(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def echoes(context: Context) -> str:
            heard = [await context.receive(), await context.receive()]
            await context.tell(f"heard {heard[0]}")
            return " ".join(heard)

        session = bb.session("s")
        task = await session.spawn("echoes")
        await task.send("hello")
        await task.send("you")
        await task.wait(30)
        assert task.result == "hello you"
        assert [signal.record.kind for signal in await session.told()] == ["message", "completed"]


async def test_e12_an_ask_within_a_budget_puts_the_call_on_record(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool
        async def asks(context: Context) -> str:
            return await context.ask("Go on?")

        session = bb.session("s")
        call = asyncio.create_task(session.invoke("asks", budget=60))
        task = await wait_until_async(lambda: _first(session))
        await wait_until_async(lambda: _asks(task, "Go on?"))
        await task.send("yes")
        outcome = await call
        assert (outcome.parked, outcome.result) == (False, "yes")
        await task.wait(30)
        assert task.result == "yes"


async def _first(session: Session) -> Task | None:
    found = await session.tasks()
    return found[0] if found else None


async def test_e12_a_plain_function_asks_and_waits_too(home: Path) -> None:
    """Not a coroutine that nobody awaits, and that is true in an `if`."""
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        def deletes(context: BlockingContext) -> str:
            context.tell("about to delete")
            return "deleted" if context.ask("Really?") == "yes" else "kept"

        session = bb.session("s")
        task = await session.spawn("deletes")
        await wait_until_async(lambda: _asks(task, "Really?"))
        await task.send("no")
        await task.wait(30)
        assert task.result == "kept"
        assert "message" in [signal.record.kind for signal in await session.told()]
