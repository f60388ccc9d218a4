"""X1: what a session has to be told rides along with the answers of its tools, and once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner, SignalState, StoreBusy
from backburner.app import Session
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


async def told(session: Session, title: str = "build") -> None:
    """A task of this title ends, and the session is to be told."""
    await (await session.run("true", title=title)).wait(30)


async def states(session: Session) -> list[SignalState]:
    return [signal.record.state for signal in await session.told()]


async def test_x1_signals_ride_along_and_count_as_delivered_with_the_next_call(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        tools = session.toolset()
        started = await tools.call("background_run", {"command": "exit 3", "title": "build"})
        await (await session.task(started.data["id"])).wait(30)

        async def state() -> SignalState:
            (signal,) = await session.told()
            return signal.record.state

        assert await state() is SignalState.PENDING
        first = await tools.call("background_list")
        assert "[failed] build" in first.text
        assert first.data["signals"][0]["task"] == started.data["id"]
        assert await state() is SignalState.CLAIMED
        second = await tools.call("background_list")
        assert "[failed]" not in second.text
        assert await state() is SignalState.DELIVERED


async def test_x1_a_client_that_does_not_come_back_leaves_its_signals_to_the_next(
    home: Path,
) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        gone = session.toolset()
        started = await gone.call("background_run", {"command": "true"})
        await (await session.task(started.data["id"])).wait(30)
        first = await gone.call("background_list")
        await gone.close()
        again = await session.toolset().call("background_list")
        assert again.data["signals"] == first.data["signals"], "under the same key"


async def test_x1_what_a_parallel_call_was_told_is_not_forgotten(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")

        await told(session, "first")
        tools = session.toolset()
        assert "first" in (await tools.call("background_list")).text
        await told(session, "second")
        store = bb.store
        acknowledge = store.acknowledge
        entered, go = asyncio.Event(), asyncio.Event()

        async def slowly(*given: Any) -> Any:
            entered.set()
            await go.wait()
            return await acknowledge(*given)

        store.acknowledge = slowly  # type: ignore[method-assign]
        slow = asyncio.create_task(tools.heard())
        await entered.wait()
        assert "second" in (await tools.call("background_list")).text, "a call at the same time"
        go.set()
        await slow
        await tools.heard()
        states = {signal.record.state for signal in await session.told()}
        assert states == {SignalState.DELIVERED}


async def test_x1_what_could_not_be_acknowledged_is_acknowledged_later(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        tools = session.toolset()
        await (await session.run("true")).wait(30)
        await tools.call("background_list")
        acknowledge = bb.store.acknowledge

        async def cannot(*_: Any) -> Any:
            raise StoreBusy("not now")

        bb.store.acknowledge = cannot  # type: ignore[method-assign]
        await tools.heard()
        bb.store.acknowledge = acknowledge  # type: ignore[method-assign]
        await tools.heard()
        (signal,) = await session.told()
        assert signal.record.state is SignalState.DELIVERED


async def test_x1_what_a_call_took_that_was_given_up_is_told_by_the_next(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await told(session)
        tools = session.toolset()
        claim = bb.store.claim_signals
        claimed, go = asyncio.Event(), asyncio.Event()

        async def slowly(*given: Any, **named: Any) -> Any:
            signals = await claim(*given, **named)
            claimed.set()
            await go.wait()
            return signals

        bb.store.claim_signals = slowly  # type: ignore[method-assign]
        call = asyncio.create_task(tools.call("background_list"))
        await claimed.wait()
        call.cancel()
        asyncio.get_running_loop().call_soon(go.set)  # it has heard that by then
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await states(session) == [SignalState.PENDING]
        bb.store.claim_signals = claim  # type: ignore[method-assign]
        assert "[completed] build" in (await tools.call("background_list")).text


async def test_x1_what_was_given_back_is_not_acknowledged_by_a_later_call(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await told(session)
        tools = session.toolset()
        assert "[completed]" in (await tools.call("background_list")).text
        await tools.close()
        assert "[completed]" in (await tools.call("background_list")).text, "told again"
        await tools.call("background_list")
        assert await states(session) == [SignalState.DELIVERED]


async def test_x1_an_end_that_the_answer_tells_itself_is_not_told_twice(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        task = await session.run("exit 3", title="build")
        await task.wait(30)
        tools = session.toolset()
        answer = await tools.call("background_output", {"id": task.id})
        assert answer.text.count("failed: exit code 3") == 1
        assert [each["task"] for each in answer.data["signals"]] == [task.id], "it is delivered"
        assert "signals" not in (await tools.call("background_output", {"id": task.id})).data
        assert await states(session) == [SignalState.DELIVERED]


async def test_x3_long_signals_come_one_after_the_other(home: Path) -> None:
    async with Backburner.open(home) as bb:

        @bb.tool(background=True)
        async def asks(context: Any) -> str:
            return await context.ask("why? " * 1000)

        session = bb.session("s")
        tools = session.toolset()
        runs = [await session.spawn("asks") for _ in range(3)]

        async def all_asked() -> bool:
            return len(await session.told()) == len(runs)

        await wait_until_async(all_asked)
        answers = [await tools.call("background_list") for _ in range(4)]
        assert [len(each.data.get("signals", [])) for each in answers] == [1, 1, 1, 0]
        assert all(len(each.text) < 7_000 for each in answers)
        for run in runs:
            await run.stop()
