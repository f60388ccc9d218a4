"""A8: a chat goes on by itself, once, when there is something to tell it."""

import asyncio
import json
import os
import signal as signals
import sys
from pathlib import Path

import pytest

from backburner import Backburner, Busy, Later, Session, Settings, Signal, SignalKind, SignalState
from backburner.model import clock
from backburner.runtime.feed import Feed
from backburner.runtime.followup import DELIBERATE
from backburner.runtime.signals import SignalService
from backburner.sync import Backburner as SyncBackburner
from backburner.sync import Signal as SyncSignal
from tests.conftest import REPOSITORY
from tests.faults.record import rows
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

QUICK = Settings(delivery_retry_s=0.001)
"""Five further tries within a second."""


class Chat:
    """Hears what it is told; what it answers is up to the test."""

    def __init__(self, *answers: object) -> None:
        self.turns: list[list[str]] = []
        self._answers = list(answers)

    async def __call__(self, told: list[Signal]) -> object:
        self.turns.append([each.task for each in told])
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


async def states(session: Session) -> list[SignalState]:
    return [each.record.state for each in await session.told()]


async def all_delivered(session: Session, count: int = 1) -> None:
    async def delivered() -> bool:
        return await states(session) == [SignalState.DELIVERED] * count

    await wait_until_async(delivered)


async def test_a8_a_chat_is_continued_once_and_then_it_is_recorded(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("once")
        chat = Chat()
        async with session.follow_up(chat):
            task = await session.run("exit 3")
            await all_delivered(session)
            assert chat.turns == [[task.id]]
        async with session.follow_up(chat, batch_s=0):
            other = await session.run("true")
            await all_delivered(session, 2)
        assert chat.turns == [[task.id], [other.id]]


async def test_a8_signals_that_come_together_are_told_in_one_go(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("batch")
        tasks = [await (await session.run("true")).wait(30) for _ in range(5)]
        chat = Chat()
        async with session.follow_up(chat):
            await all_delivered(session, 5)
        assert chat.turns == [[task.id for task in tasks]]


@pytest.mark.parametrize("busy", [Later(0.01), Busy()], ids=["later", "busy"])
async def test_a8_a_live_turn_is_waited_for_and_is_no_failure(
    shared_home: Path, busy: object, request: pytest.FixtureRequest
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(request.node.name)
        chat = Chat(busy, busy)
        await (await session.run("true")).wait(30)
        async with session.follow_up(chat, batch_s=0):
            await all_delivered(session)
        assert len(chat.turns) == 3
        (told,) = await session.told()
        assert told.record.tries == 1, "only the turn that was held counts"


async def test_a8_what_fails_is_tried_again_with_back_off(shared_home: Path) -> None:
    async with Backburner.open(shared_home, settings=QUICK) as bb:
        session = bb.session("again")
        chat = Chat(ValueError("no model"), False)
        await (await session.run("true")).wait(30)
        async with session.follow_up(chat, batch_s=0):
            await all_delivered(session)
        assert len(chat.turns) == 3
        (told,) = await session.told()
        assert told.record.tries == 3


async def test_a8_a_dead_letter_is_visible_and_can_be_sent_again(shared_home: Path) -> None:
    async with Backburner.open(shared_home, settings=QUICK) as bb:
        session = bb.session("dead")
        chat = Chat(*[ValueError("the model is gone")] * 6)
        await (await session.run("true")).wait(30)

        async def given_up() -> bool:
            return await states(session) == [SignalState.DROPPED]

        async with session.follow_up(chat, batch_s=0):
            await wait_until_async(given_up)
            (told,) = await session.told()
            assert told.record.reason == "given up after 6 tries: ValueError: the model is gone"
            listed = await _program("signals", "--failed", "--json", "--session", "dead")
            assert [each["key"] for each in json.loads(listed)] == [told.key]
            await _program("signals", "--resend", told.key, "--session", "dead")
            await all_delivered(session)
        assert len(chat.turns) == 7


async def _program(*words: str) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backburner.cli", *words, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


async def test_a4_a_deliberate_stop_is_not_followed_up(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("stopped")
        chat = Chat()
        async with session.follow_up(chat, batch_s=0):
            task = await session.run("sleep 3600")
            await task.stop(force=True)
            other = await session.run("true")

            async def settled() -> bool:
                return await states(session) == [SignalState.DROPPED, SignalState.DELIVERED]

            await wait_until_async(settled)
        assert chat.turns == [[other.id]]
        stopped, _ = await session.told()
        assert (stopped.record.kind, stopped.record.reason) == (SignalKind.CANCELED, DELIBERATE)


async def test_a8_a_deleted_session_is_not_followed_up(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("deleted")
        chat = Chat(Later(0.01), Later(3600))
        await (await session.run("true")).wait(30)
        async with session.follow_up(chat, batch_s=0):
            await wait_until_async(lambda: len(chat.turns) == 2)
            await session.end()
            (told,) = await session.told()
            assert (told.record.state, told.record.reason) == (
                SignalState.DROPPED,
                "the session was deleted",
            )
            task = await session.run("true")
            await wait_until_async(lambda: len(chat.turns) == 3)
        assert chat.turns[-1] == [task.id], "to start something has brought it back"


async def test_x1_two_that_follow_the_same_session_never_tell_twice(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb, Backburner.open(shared_home) as other:
        session = bb.session("two")
        chats = [Chat(), Chat()]
        async with (
            session.follow_up(chats[0], batch_s=0),
            other.session("two").follow_up(chats[1], batch_s=0),
        ):
            tasks = [await session.run("true") for _ in range(12)]
            await all_delivered(session, 12)
        told = [task for chat in chats for turn in chat.turns for task in turn]
        assert sorted(told) == sorted(task.id for task in tasks)


async def test_x1_a_callback_that_takes_long_keeps_what_it_has(shared_home: Path) -> None:
    """Longer than a lease: it is renewed meanwhile."""
    async with Backburner.open(shared_home) as bb, Backburner.open(shared_home) as other:
        for each in (bb, other):
            await each.inbox.close()
            # Renewed after a third of it, so a commit may take four seconds.
            each.inbox = SignalService(each.store, Feed(each.store), lease_s=6)
        session = bb.session("long")
        turns: list[str] = []
        done = asyncio.Event()

        async def think(told: list[Signal]) -> None:
            turns.extend(each.task for each in told)
            await done.wait()

        def lease_ends() -> int:
            found = "SELECT lease_until FROM signal WHERE key = ?"
            ((ends,),) = rows(shared_home, found, f"{task.id}:end")
            return ends

        task = await (await session.run("true")).wait(30)
        async with session.follow_up(think, batch_s=0):
            await wait_until_async(lambda: turns)
            first = lease_ends()
            async with other.session("long").follow_up(think, batch_s=0):
                await wait_until_async(lambda: clock.boot_now() > first)
                assert lease_ends() > first
                done.set()
                await all_delivered(session)
        assert turns == [task.id]


async def test_x1_what_a_killed_follower_had_is_told_again_under_the_same_key(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("killed")
        await (await session.run("true")).wait(30)
        follower = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.runtime.follower",
            str(shared_home),
            "killed",
            stdout=asyncio.subprocess.PIPE,
            cwd=REPOSITORY,
        )
        assert follower.stdout is not None
        key = (await follower.stdout.readline()).decode().strip()
        assert await states(session) == [SignalState.CLAIMED]
        os.kill(follower.pid, signals.SIGKILL)
        await follower.wait()
        chat = Chat()
        keys: list[str] = []

        async def heard(told: list[Signal]) -> None:
            keys.extend(each.key for each in told)
            await chat(told)

        async with session.follow_up(heard, batch_s=0):
            await all_delivered(session)
        assert keys == [key]


async def test_a8_an_owner_is_followed_up_one_session_at_a_time(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        chats: dict[str, list[str]] = {}

        def told(signals: list[Signal]) -> None:
            (name,) = {each.record.session for each in signals}
            chats.setdefault(name, []).extend(each.task for each in signals)

        sessions = [bb.session(name, owner="grace") for name in ("one", "two")]
        stranger = bb.session("one", owner="linus")
        tasks = [await (await session.run("true")).wait(30) for session in sessions]
        await (await stranger.run("true")).wait(30)
        async with bb.follow_up(told, owner="grace"):
            for session in sessions:
                await all_delivered(session)
        assert chats == {"one": [tasks[0].id], "two": [tasks[1].id]}
        assert await states(stranger) == [SignalState.PENDING]


async def test_x1_what_was_held_when_the_following_ends_goes_back_at_once(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("left")
        await (await session.run("true")).wait(30)
        begun = asyncio.Event()

        async def never(_: list[Signal]) -> None:
            begun.set()
            await asyncio.Event().wait()

        async with session.follow_up(never, batch_s=0):
            await asyncio.wait_for(begun.wait(), 30)
        assert await states(session) == [SignalState.PENDING]


def test_a8_the_same_without_await(shared_home: Path) -> None:
    with SyncBackburner.open(shared_home) as bb:
        session = bb.session("sync")
        heard: list[str] = []

        def told(signals: list[SyncSignal]) -> None:
            heard.extend(each.task for each in signals)

        with session.follow_up(told, batch_s=0):
            task = session.run("true")
            wait_until(lambda: heard == [task.id])
        with bb.follow_up(told):
            pass
