"""X1: kill -9, a full disk, a late keeper or none at all: no delivery is lost."""

import asyncio
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from backburner import (
    Backburner,
    SignalState,
    State,
    StoreFull,
    Task,
)
from backburner.model import clock
from backburner.model.channels import Channel, ChannelKind
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.runtime.delivery import Deliverer
from backburner.store.sqlite.store import open_store
from backburner.work.process.identity import boot_id
from tests.faults.victims import (
    keeper_of,
    kill_all_of_ours,
    kill_keeper,
    nobody_keeps,
    processes_with,
    sleepers,
    unique_seconds,
)
from tests.receiver import Receiver
from tests.runtime.deliveries import all_are, ended, lines, pushed, the_push
from tests.waiting import pause_async, wait_until, wait_until_async

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_retries")]


async def test_x1_a_keeper_that_is_killed_in_the_middle_has_a_successor_that_delivers(
    home: Path, tmp_path: Path
) -> None:
    """Under the same key; and what the first try had started does not go on beside the second."""
    log, seconds = tmp_path / "log", unique_seconds()
    line = f"cat >>{log}; test -e {tmp_path}/again || sleep {seconds}"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await bb.add_channel("log", command=line)
        task = await ended(session)
        await wait_until_async(lambda: bool(sleepers(seconds)))
        (tmp_path / "again").touch()
        kill_keeper(home)
        done = await the_push(session, "log")
        assert [each["key"] for each in lines(log)] == [f"{task.id}:end@log"] * 2
        assert done.tries == 2
        assert processes_with(seconds) == []


async def test_x1_a_webhook_is_repeated_under_its_key_when_its_keeper_is_killed(
    home: Path, server: Receiver
) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        secret = await bb.add_channel("web", webhook=server.url("/slow"), allow_private=True)
        assert secret is not None
        task = await ended(session)
        await wait_until_async(lambda: len(server.received) == 1)
        server.answer = 204
        kill_keeper(home)
        done = await the_push(session, "web")
        assert done.tries == 2
        first, second = server.received
        assert first.key == second.key == f"{task.id}:end@web"
        assert first.verified(secret) | {"data": None} == second.verified(secret) | {"data": None}


async def test_x1_a_keeper_that_is_told_to_leave_gives_back_what_it_was_delivering(
    home: Path, tmp_path: Path
) -> None:
    log, seconds = tmp_path / "log", unique_seconds()
    line = f"cat >>{log}; test -e {tmp_path}/again || sleep {seconds}"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await bb.add_channel("log", command=line)
        await ended(session)
        await wait_until_async(lambda: bool(sleepers(seconds)))
        (tmp_path / "again").touch()
        keeper = keeper_of(home)
        assert keeper is not None
        os.kill(keeper, 15)
        await the_push(session, "log")  # by the next one, which this application calls
        assert processes_with(seconds) == []
        assert len(lines(log)) == 2


async def test_x1_nothing_is_lost_when_nobody_was_there_to_deliver(
    home: Path, tmp_path: Path
) -> None:
    """Whoever opens the home next calls a keeper, though no task needs one."""
    log = tmp_path / "log"
    with nobody_keeps(home):
        async with Backburner.open(home) as bb:
            await bb.add_channel("log", command=f"cat >>{log}")
            task = await bb.session("s").run("true", cwd="/nowhere")
            assert task.state is State.FAILED
            assert lines(log) == []
    async with Backburner.open(home):
        await wait_until_async(lambda: bool(lines(log)))
    assert [each["task"] for each in lines(log)] == [task.id]


async def test_x1_what_ends_without_a_keeper_is_delivered_all_the_same(
    home: Path, tmp_path: Path
) -> None:
    """One that could not start never needed a keeper; its channels do."""
    log = tmp_path / "log"
    async with Backburner.open(home) as bb:
        await bb.add_channel("log", command=f"cat >>{log}")
        await bb.session("s").run("true", cwd="/nowhere")
    wait_until(lambda: len(lines(log)) == 1)


async def test_x1_the_keeper_stays_until_everything_is_delivered(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_KEEPER_IDLE_S", "0")
    monkeypatch.setenv("BACKBURNER_DELIVERY_RETRY_S", "3")
    log = tmp_path / "log"
    async with Backburner.open(home) as bb:
        await bb.add_channel("log", command=f"cat >>{log}; test $(wc -l <{log}) = 2")
        await ended(bb.session("s"))
    wait_until(lambda: len(lines(log)) == 2)
    wait_until(lambda: keeper_of(home) is None)
    async with Backburner.open(home) as bb:
        (done,) = await pushed(bb.session("s"), "log")
        assert (done.state, done.tries) == (SignalState.DELIVERED, 2)


async def test_x1_keeper_and_guardian_killed_again_and_again_lose_nothing(
    home: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await bb.add_channel("log", command=f"cat >>{log}")
        tasks: list[Task] = []
        for number in range(24):
            tasks.append(await session.run("true"))
            if number % 6 == 3:
                kill_all_of_ours(home)
        for task in tasks:
            await task.wait(60)
        await wait_until_async(
            lambda: all_are(session, "log", SignalState.DELIVERED, count=24), timeout=60
        )
        heard = {each["key"] for each in lines(log)}
        assert heard == {f"{task.id}:end@log" for task in tasks}


async def test_x1_a_delivery_that_waits_costs_nothing_and_one_that_is_due_is_not_late(
    home: Path,
) -> None:
    """Looks are reads; to claim is to write, and happens when there is something to claim."""
    with nobody_keeps(home):
        store = open_store(home, boot_id())
        claims: list[float] = []
        claim = store.claim_deliveries

        async def counted(**options: Any) -> Any:
            claims.append(clock.boot_now() / 1e6)
            return await claim(**options)

        store.claim_deliveries = counted  # type: ignore[method-assign]
        settings = Settings(delivery_retry_s=1.0)
        deliverer = Deliverer(store, Home(home), settings, lambda _: None)
        running = asyncio.create_task(deliverer.run())
        try:
            async with Backburner.open(home) as bb:
                session = bb.session("s")
                await bb.add_channel("bad", command="exit 1")
                await session.run("true", cwd="/nowhere")
                await the_push(session, "bad", SignalState.FAILED)
                assert not deliverer.idle
                before = len(claims)
                (failed,) = await pushed(session, "bad")
                assert failed.retry_at is not None
                await session.wish([])
                for _ in range(20):  # changes that concern no channel
                    await session.run("true", cwd="/nowhere")
                if clock.now() < failed.retry_at - clock.SECOND // 10:
                    assert len(claims) == before
                await wait_until_async(lambda: len(claims) > before)
                claimed_at = round(claims[before] * 1e6) + clock.now() - clock.boot_now()
                assert -clock.SECOND < claimed_at - failed.retry_at < 5 * clock.SECOND
                await bb.remove_channel("bad")
                await wait_until_async(lambda: deliverer.idle)
                before = len(claims)
                await pause_async(0.5, because="what is counted are the claims in silence")
                assert len(claims) == before
        finally:
            running.cancel()
            await asyncio.wait([running])
            await deliverer.close()
            await store.close()


async def nothing_due(**_: object) -> None:
    return None


async def test_what_a_late_deliverer_finds_out_changes_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was suspended for longer than its lease: its successor's word counts."""
    line = f"cat >/dev/null; until test -e {shlex.quote(str(tmp_path))}/go; do sleep 0.02; done"
    with nobody_keeps(home):
        store = open_store(home, boot_id())
        deliverer = Deliverer(store, Home(home), Settings(), lambda _: None)
        running = asyncio.create_task(deliverer.run())
        try:
            await store.add_channel(Channel("c", "local", None, ChannelKind.COMMAND, line))
            async with Backburner.open(home) as bb:
                session = bb.session("s")
                await session.run("true", cwd="/nowhere")
                held = await the_push(session, "c", SignalState.CLAIMED)
                monkeypatch.setattr(store, "next_delivery", nothing_due)  # it is suspended
                await bb.store.release_deliveries()
                (taken,) = await bb.store.claim_deliveries(consumer="next", limit=1, lease_s=60)
                assert taken.key == held.key
                (tmp_path / "go").touch()
                await wait_until_async(lambda: not deliverer._lanes)  # pyright: ignore[reportPrivateUsage]
                (now,) = await pushed(session, "c")
                assert (now.state, now.tries) == (SignalState.CLAIMED, 2)
                assert await store.acknowledge([taken.key], session.scope, consumer="next") == 1
        finally:
            running.cancel()
            await asyncio.wait([running])
            await deliverer.close()
            await store.close()


async def test_x1_what_a_full_disk_keeps_from_being_written_down_is_written_later(
    home: Path, tmp_path: Path
) -> None:
    """And is not delivered again meanwhile."""
    log = tmp_path / "log"
    said: list[str] = []
    with nobody_keeps(home):
        store = open_store(home, boot_id())
        acknowledge = store.acknowledge

        async def full_at_first(*arguments: Any, **options: Any) -> int:
            if not said:
                raise StoreFull("no room")
            return await acknowledge(*arguments, **options)

        store.acknowledge = full_at_first  # type: ignore[method-assign]
        deliverer = Deliverer(store, Home(home), Settings(), said.append)
        running = asyncio.create_task(deliverer.run())
        try:
            async with Backburner.open(home) as bb:
                await bb.add_channel("log", command=f"cat >>{log}")
                await bb.session("s").run("true", cwd="/nowhere")
                done = await the_push(bb.session("s"), "log")
                assert done.tries == len(lines(log)) == 1
                assert "no room" in said[0]
        finally:
            running.cancel()
            await asyncio.wait([running])
            await deliverer.close()
            await store.close()
