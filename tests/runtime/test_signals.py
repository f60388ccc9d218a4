"""X1: told always, once. Signals are claimed, acknowledged, given back, not shown to others."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner, Session, Signal, SignalKind, SignalState, Task
from backburner.model import clock
from tests.conftest import REPOSITORY
from tests.faults.record import rows
from tests.waiting import pause_async, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


async def ended(session: Session, *lines: str) -> list[Task]:
    """Tasks that have ended, in this order."""
    return [await (await session.run(line)).wait(30) for line in lines]


async def there(session: Session) -> list[Signal]:
    """What is to be told now, acknowledged."""
    found: list[Signal] = []
    async for signal in session.signals(follow=False):
        assert await signal.ack()
        found.append(signal)
    return found


async def test_x1_every_end_is_told_once_in_order_and_in_words(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("order")
        tasks = await ended(session, "true", "exit 3", "kill -9 $$")
        stopped = await session.run("sleep 3600", title="sleeper")
        await stopped.stop(force=True)
        signals = await there(session)
        assert [signal.task for signal in signals] == [task.id for task in (*tasks, stopped)]
        assert [signal.key for signal in signals] == [f"{signal.task}:end" for signal in signals]
        assert [signal.record.kind for signal in signals] == [
            SignalKind.COMPLETED,
            SignalKind.FAILED,
            SignalKind.FAILED,
            SignalKind.CANCELED,
        ]
        for signal, words in zip(
            signals, ["finished", "exit code 3", "killed", "stopped"], strict=True
        ):
            assert words in signal.text
        assert await there(session) == []
        told = await session.told()
        assert {each.record.state for each in told} == {SignalState.DELIVERED}
        await stopped.refresh()
        assert stopped.record.signal_state is SignalState.DELIVERED


async def test_x1_an_acknowledgement_counts_once(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("once")
        await ended(session, "true")
        (signal,) = await session.told()
        copy = (await session.told())[0]
        assert await signal.ack()
        assert not await signal.ack()
        assert not await copy.ack()
        assert signal.record.state is SignalState.DELIVERED


async def test_x1_consumers_share_and_none_gets_what_another_has(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("shared")
        got: list[str] = []

        async def consume() -> None:
            async for signal in session.signals():
                got.append(signal.key)
                await asyncio.sleep(0)  # noqa: TID251 - a turn for the others, and no time
                assert await signal.ack()

        consumers = [asyncio.create_task(consume()) for _ in range(4)]
        tasks = [await session.run("true") for _ in range(30)]
        await wait_until_async(lambda: len(got) == 30)
        for consumer in consumers:
            consumer.cancel()
        await asyncio.gather(*consumers, return_exceptions=True)
        assert sorted(got) == sorted(f"{task.id}:end" for task in tasks)


async def test_x1_what_was_not_acknowledged_goes_back_when_the_consumer_ends(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("back")
        await ended(session, "true", "true")
        signals = session.signals()
        first = await anext(signals)
        await first.ack()
        second = await anext(signals)
        await signals.aclose()
        again = await there(session)
        assert [signal.key for signal in again] == [second.key]
        assert again[0].record.tries == 1, "what was given back was not tried"


async def test_x1_what_was_not_acknowledged_goes_back_when_the_application_ends(
    shared_home: Path,
) -> None:
    """It leaves its loop and its home, as a program does at its end."""
    async with Backburner.open(shared_home) as bb:
        (task,) = await ended(bb.session("leaves"), "true")
        async for signal in bb.session("leaves").signals():
            assert signal.task == task.id
            break
    async with Backburner.open(shared_home) as bb:
        again = await there(bb.session("leaves"))
        assert [signal.task for signal in again] == [task.id]


@pytest.mark.slow
async def test_x1_what_a_dead_consumer_held_is_told_to_another_after_its_lease(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("dead")
        (task,) = await ended(session, "true")
        command = [sys.executable, "-m", "tests.runtime.consumer", str(shared_home), "dead"]
        consumer = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, cwd=REPOSITORY
        )
        assert consumer.stdout is not None
        line = await consumer.stdout.readline()
        assert line.decode().strip() == f"{task.id}:end"
        consumer.kill()
        await consumer.wait()
        found = "SELECT lease_until FROM signal WHERE key = ?"
        ((lease_ends,),) = rows(shared_home, found, f"{task.id}:end")
        async for signal in session.signals():  # it waits, without anyone's help
            assert signal.task == task.id
            assert clock.boot_now() >= lease_ends, "it is not known that its holder is dead"
            assert await signal.ack()
            break
        assert await there(session) == []


@pytest.mark.slow
@pytest.mark.usefixtures("nobody_looks")
async def test_x1_a_follower_hears_when_it_happens(shared_home: Path) -> None:
    """The keeper wrote it, in another process, and told this one."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session("at once")
        signals = session.signals()
        for number in range(15):
            task = await session.run(f"sleep 0.0{number % 10}")
            signal = await asyncio.wait_for(anext(signals), 30)
            assert signal.task == task.id
            await signal.ack()
        await signals.aclose()


async def test_x1_signals_of_others_do_not_exist(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        await ended(bb.session("mine", owner="ada"), "true")
        (mine,) = await bb.session("mine", owner="ada").told()
        for other in (bb.session("other", owner="ada"), bb.session("mine", owner="bob")):
            assert await other.told() == []
            assert await there(other) == []
            assert await bb.inbox.acknowledge([mine.key], other.scope) == 0
        assert await mine.ack()


async def test_x1_a_consumer_with_nothing_to_do_does_nothing(shared_home: Path) -> None:
    """Token bills and busy cores come from looking in vain: a look must not cause the next one."""
    looks = 0
    async with Backburner.open(shared_home) as bb:
        session = bb.session("quiet")
        await (await session.run(["true"])).wait(timeout=30)
        claim = bb.store.claim_signals

        async def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal looks
            looks += 1
            return await claim(*arguments, **options)

        bb.store.claim_signals = counted  # pyright: ignore[reportAttributeAccessIssue]

        async def consume() -> None:
            async for signal in session.signals():
                await signal.ack()

        consumer = asyncio.create_task(consume())
        await wait_until_async(lambda: looks >= 2)
        await pause_async(1, because="what is counted are the looks in a second of silence")
        consumer.cancel()
        await asyncio.wait([consumer])
    assert looks < 10, "the consumer wakes itself"
