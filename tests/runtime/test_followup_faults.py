"""A8: a chat does not fall silent, whatever its callback does, and no chat waits for another."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from backburner import (
    Backburner,
    Later,
    NotAllowed,
    Session,
    Settings,
    Signal,
    SignalState,
    StoreAway,
)
from backburner.model.followup import BUSY_WAIT_S, LONGEST_WAIT_S
from backburner.model.signals import Signal as SignalRecord
from backburner.runtime.feed import Feed
from backburner.runtime.followup import FollowUp
from tests.faults.victims import unique_seconds
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

QUICK = Settings(delivery_retry_s=0.001)


async def states(session: Session) -> list[SignalState]:
    return [each.record.state for each in await session.told()]


async def delivered(session: Session) -> bool:
    return await states(session) == [SignalState.DELIVERED]


async def cancelled_elsewhere() -> None:
    other = asyncio.create_task(asyncio.Event().wait())
    other.cancel()
    await other


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()


async def raises_a_group() -> None:
    raise BaseExceptionGroup("several", [asyncio.CancelledError(), ValueError("x")])


@pytest.mark.parametrize("misbehave", [cancelled_elsewhere, cancels_itself, raises_a_group])
async def test_a8_whatever_a_callback_raises_is_tried_again(
    shared_home: Path, misbehave: Callable[[], Awaitable[None]], request: pytest.FixtureRequest
) -> None:
    async with Backburner.open(shared_home, settings=QUICK) as bb:
        session = bb.session(request.node.name)
        turns = 0

        async def chat(_: list[Signal]) -> None:
            nonlocal turns
            turns += 1
            if turns == 1:
                await misbehave()

        await (await session.run("true")).wait(30)
        async with session.follow_up(chat, batch_s=0):
            await wait_until_async(lambda: delivered(session))
        assert turns == 2
        (told,) = await session.told()
        assert told.record.tries == 2


async def test_x1_what_was_claimed_unheard_is_told_when_its_lease_ends(
    shared_home: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The database is lost right after it has written the claim: nobody renews that."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session(request.node.name)
        claim, lost, told = bb.store.claim_signals, 0, list[str]()

        async def lose_one(*given: Any, **named: Any) -> list[SignalRecord]:
            nonlocal lost
            claimed = await claim(*given, **named)
            if claimed and not lost:
                lost = len(claimed)
                raise StoreAway("the database was lost while it wrote")
            return claimed

        async def tell(signals: list[SignalRecord]) -> None:
            told.extend(signal.key for signal in signals)

        monkeypatch.setattr(bb.store, "claim_signals", lose_one)
        await (await session.run("true")).wait(30)
        followed = FollowUp(
            bb.store, Feed(bb.store), session.scope, tell,
            batch_s=0, retry_s=1, report=lambda _: None, lease_s=0.5,
        )  # fmt: skip
        following = asyncio.create_task(followed.run())
        await wait_until_async(lambda: delivered(session))
        following.cancel()
        await asyncio.wait([following])
        assert (lost, len(told)) == (1, 1)


@pytest.mark.parametrize(
    ("seconds", "wait"),
    [
        (float("inf"), LONGEST_WAIT_S),
        (1e30, LONGEST_WAIT_S),
        (float("nan"), BUSY_WAIT_S),
        (float("-inf"), BUSY_WAIT_S),
        ("soon", BUSY_WAIT_S),
        (None, BUSY_WAIT_S),
        (10**400, BUSY_WAIT_S),
        (0.5, 0.5),
    ],
)
def test_a8_later_is_a_time_that_comes(seconds: float, wait: float) -> None:
    assert Later(seconds).wait_s == wait


async def test_a8_a_chat_that_is_busy_for_ever_goes_on_with_what_comes(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("for-ever")
        heard: list[str] = []

        async def chat(told: list[Signal]) -> object:
            heard.extend(each.task for each in told)
            return Later(float("inf")) if len(heard) == 1 else None

        async with session.follow_up(chat, batch_s=0):
            await session.run("true")
            await wait_until_async(lambda: heard)
            task = await session.run("true")
            await wait_until_async(lambda: heard[1:] == [task.id])


async def test_a8_one_slow_chat_holds_up_no_other(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        slow, quick = (bb.session(name, owner="hopper") for name in ("slow", "quick"))
        begun, done = asyncio.Event(), asyncio.Event()
        turns: list[list[str]] = []

        async def chat(told: list[Signal]) -> None:
            if told[0].record.session == "slow":
                turns.append([each.task for each in told])
                begun.set()
                await done.wait()

        async with bb.follow_up(chat, owner="hopper", batch_s=0):
            first = await slow.run("true")
            await asyncio.wait_for(begun.wait(), 30)
            await quick.run("true")
            await wait_until_async(lambda: delivered(quick))
            further = [await (await slow.run("true")).wait(30) for _ in range(2)]

            async def claimed() -> bool:
                return await states(slow) == [SignalState.CLAIMED] * 3

            await wait_until_async(claimed)
            assert turns == [[first.id]], "one turn of a chat at a time"
            done.set()

            async def all_told() -> bool:
                return await states(slow) == [SignalState.DELIVERED] * 3

            await wait_until_async(all_told)
        assert turns == [[first.id], [each.id for each in further]]


async def test_a8_what_is_deleted_or_answered_before_its_turn_is_not_told(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("meanwhile")
        begun, done = asyncio.Event(), asyncio.Event()
        turns: list[list[str]] = []

        async def chat(told: list[Signal]) -> None:
            turns.append([each.task for each in told])
            begun.set()
            await done.wait()

        async with session.follow_up(chat, batch_s=0):
            first = await session.run("true")
            await asyncio.wait_for(begun.wait(), 30)
            asking = await session.run([sys.executable, "-m", "backburner.cli", "ask", "Which?"])

            async def claimed() -> bool:
                return await states(session) == [SignalState.CLAIMED] * 2

            await wait_until_async(claimed)
            await asking.send("main")
            last = await (await session.run("true")).wait(30)
            await asking.wait(30)
            done.set()

            async def settled() -> bool:
                return set(await states(session)) == {SignalState.DELIVERED, SignalState.DROPPED}

            await wait_until_async(settled)
            assert turns[0] == [first.id]
            told = [task for turn in turns[1:] for task in turn]
            assert sorted(told) == sorted([last.id, asking.id]), "of its end, not of its question"

            begun.clear()
            done.clear()
            count = len(turns)
            await session.run("true")
            await asyncio.wait_for(begun.wait(), 30)
            await (await session.run("true")).wait(30)

            async def both() -> bool:
                return (await states(session))[-2:] == [SignalState.CLAIMED] * 2

            await wait_until_async(both)
            await session.end()
            done.set()
        assert len(turns) == count + 1, "it was deleted before the second of them was told"


async def test_a8_a_thread_that_is_at_it_when_the_block_is_left_has_told(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("thread")
        begun, done = threading.Event(), threading.Event()

        def chat(_: list[Signal]) -> None:
            begun.set()
            done.wait(30)

        await (await session.run("true")).wait(30)
        async with session.follow_up(chat, batch_s=0):
            await wait_until_async(begun.is_set)
            asyncio.get_running_loop().call_later(0.05, done.set)
        assert await states(session) == [SignalState.DELIVERED]


async def test_a8_looking_at_signals_is_no_try(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("looked")
        await (await session.run("true")).wait(30)
        for _ in range(3):
            async for _ in session.signals(follow=False):
                pass
        (told,) = await session.told()
        assert (told.record.state, told.record.tries) == (SignalState.PENDING, 0)


async def test_d4_a_dry_run_sees_signals_and_takes_none(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("dry-signals")
        task = await session.run(f"sleep {unique_seconds()}")
        dry = bb.session("dry-signals", mode="dry_run")
        with pytest.raises(NotAllowed):
            dry.follow_up(print)
        await dry.wish([])
        assert await session.wished() is None
        waiting = asyncio.create_task(anext(dry.signals()))
        await task.stop(force=True)
        heard = await asyncio.wait_for(waiting, 30)
        assert heard.task == task.id
        assert await heard.ack() is False
        assert [each.task async for each in dry.signals(follow=False)] == [task.id]
        assert await states(session) == [SignalState.PENDING]


async def test_a9_what_a_callback_gets_may_do_what_its_session_may(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        await (await bb.session("planned").run("true")).wait(30)
        refused: list[BaseException] = []

        async def chat(told: list[Signal]) -> None:
            try:
                await told[0].resend()
            except NotAllowed as error:
                refused.append(error)

        async with bb.session("planned", mode="plan").follow_up(chat, batch_s=0):
            await wait_until_async(lambda: refused)
