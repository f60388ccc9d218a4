"""X1, X2: a lost connection, or a killed database, loses nothing and doubles nothing."""

import asyncio
import signal
from collections import Counter

import psycopg
import pytest

from backburner.model.errors import StoreAway, StoreBusy, StoreError
from backburner.model.events import EventKind
from backburner.model.states import State
from backburner.runtime.feed import Feed
from backburner.store.news import News
from backburner.store.postgres import connection, reader, writer
from backburner.store.postgres.arrivals import BATCH
from backburner.store.postgres.writers_lock import WRITERS
from tests.postgres_server import Server
from tests.store.conformance.making import ADA, BOB, ENDINGS, PLACE, get, queued, running
from tests.store.postgres.conftest import Open
from tests.store.postgres.proxy import Cut, Wire
from tests.waiting import wait_until_async


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER])
async def test_x2_what_was_cut_off_while_it_was_committed_is_written_once(
    address: str, open_at: Open, cut: Cut
) -> None:
    """Where the answer is lost, the database is asked what became of the transaction."""
    async with Wire(address) as wire:
        store = await open_at(wire.address)
        wire.cut = cut
        task, other = await asyncio.gather(queued(store), queued(store, scope=BOB))
        wire.cut = cut
        begun = asyncio.gather(
            store.claim(task.id, 1, PLACE), store.request_stop(other.id, BOB, 5.0)
        )
        assert None not in await begun, "or nobody carries it out"
        wire.cut = cut
        assert await store.finish(task.id, 1, ENDINGS["exit"]) is not None
        assert wire.cuts == 3
        kinds = [event.kind for event in await store.events(task.id)]
        assert kinds == [EventKind.CREATED, EventKind.STARTED, EventKind.FINISHED]
        assert len(await store.signals(ADA)) == 1
        await store.close()


@pytest.mark.parametrize("cut", [Cut.BEFORE, Cut.AFTER])
async def test_x2_what_was_cut_off_while_it_was_written_at_once_is_written_once(
    address: str, open_at: Open, cut: Cut
) -> None:
    """It is written again in steps: what is there already is what was wanted."""
    async with Wire(address, at=b'{"events"') as wire:
        store = await open_at(wire.address)
        await queued(store)
        heard: list[News | None] = []
        store.on_news(heard.append)
        wire.cut = cut
        task = await queued(store)
        assert any(news is None or news.events for news in heard), "who follows it here is told"
        wire.cut = cut
        claimed = await store.claim(task.id, 1, PLACE)
        assert claimed is not None, "or nobody carries it out"
        assert (claimed.state, claimed.place) == (State.RUNNING, PLACE)
        assert wire.cuts == 2
        assert await store.claim(task.id, 1, PLACE) is None, "it can be claimed once"
        kinds = [event.kind for event in await store.events(task.id)]
        assert kinds == [EventKind.CREATED, EventKind.STARTED]
        await store.close()


async def test_x2_who_cannot_know_whether_it_was_written_is_told_so(
    address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATIENCE_S", 0.2)
    async with Wire(address, at=b'{"events"') as wire:
        store = await open_at(wire.address)
        await queued(store)
        wire.cut = Cut.AFTER
        wire.closed = True
        with pytest.raises(StoreAway, match="not known whether") as away:
            await queued(store, "bg_1")
        assert "before you start it again" in (away.value.remedy or "")
        wire.closed = False
        await store.close()
    other = await open_at(address)
    assert await other.get("bg_1") is not None


async def test_x2_connections_that_are_cut_at_any_moment_are_made_again(
    address: str, open_at: Open
) -> None:
    async with Wire(address) as wire:
        store = await open_at(wire.address)
        for _ in range(5):
            task = await queued(store)
            wire.cut_all()
            assert (await get(store, task.id)).state is State.QUEUED
            wire.cut_all()
            assert await store.claim(task.id, 1, PLACE) is not None
        await store.close()


async def test_x1_who_listens_misses_nothing_while_the_wire_is_cut(
    address: str, open_at: Open
) -> None:
    """A change that was made meanwhile is heard of when the connection is back."""
    other = await open_at(address)
    async with Wire(address) as wire:
        store = await open_at(wire.address)
        rung = asyncio.Event()
        store.on_change(rung.set)
        wire.closed = True
        wire.cut_all()
        await queued(other)
        rung.clear()
        wire.closed = False
        async with asyncio.timeout(30):
            await rung.wait()
        await store.close()


async def test_a_database_that_stays_away_is_an_error_with_a_remedy_and_no_password(
    address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (connection, writer, reader):
        monkeypatch.setattr(module, "PATIENCE_S", 0.2)
    async with Wire(address) as wire:
        store = await open_at(wire.address.replace("test@", "test:hunter2@"))
        wire.closed = True
        wire.cut_all()
        for change in (queued(store), store.get("bg_1")):
            with pytest.raises(StoreError) as caught:
                await change
            assert "cannot be reached" in str(caught.value)
            assert caught.value.remedy
            assert "hunter2" not in repr(caught.value)
        wire.closed = False
        await queued(store)
        await store.close()


@pytest.mark.slow
async def test_x2_a_database_that_is_killed_while_many_write_loses_and_doubles_nothing(
    own_server: Server, open_at: Open
) -> None:
    """What was told to be on disk is there, and every task has one end that is told once."""
    stores = [await open_at(own_server.create()) for _ in range(1)]
    stores.append(await open_at(own_server.address("t0")))
    done: list[str] = []
    stop = asyncio.Event()

    async def live(number: int) -> None:
        store = stores[number % 2]
        while not stop.is_set():
            task = await running(store, scope=ADA)
            assert (await get(store, task.id)).state is State.RUNNING
            assert await store.finish(task.id, 1, ENDINGS["succeeded"]) is not None
            done.append(task.id)

    lives = [asyncio.create_task(live(number)) for number in range(8)]
    for _ in range(2):
        before = len(done)
        await wait_until_async(lambda before=before: len(done) > before + 20)
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        own_server.start()  # in this thread, with which it would die
    before = len(done)
    await wait_until_async(lambda: len(done) > before + 20)
    stop.set()
    await asyncio.gather(*lives)

    signals = await stores[0].signals(ADA, limit=1_000_000)
    assert Counter(told.task for told in signals) == Counter(done)
    assert await stores[1].active() == []
    for task_id in done:
        assert [event.number for event in await stores[1].events(task_id)] == [1, 2, 3]


async def test_x2_who_finds_no_turn_to_write_hears_so_and_has_written_nothing(
    address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PATIENCE_S", 0.5)
    store = await open_at(f"{address}?options=-c%20lock_timeout%3D100ms")
    task = await queued(store)
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as other:
        await other.execute("SELECT pg_advisory_lock(%s)", [WRITERS])
        sleeping = asyncio.create_task(other.execute("SELECT pg_sleep(100)"))
        writing = [queued(store), store.claim(task.id, 1, PLACE)]
        for refused in await asyncio.gather(*writing, return_exceptions=True):
            assert isinstance(refused, StoreBusy)
        sleeping.cancel()
        await asyncio.wait([sleeping])
    assert (await get(store, task.id)).state is State.QUEUED
    assert await store.claim(task.id, 1, PLACE) is not None, "there is a turn again"


async def test_x2_each_change_is_tried_for_its_own_time_however_many_wait(
    address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for that of all who come before it as well."""
    monkeypatch.setattr(writer, "PATIENCE_S", 4.0)
    async with Wire(address) as wire:
        store = await open_at(wire.address)
        await queued(store)
        wire.closed = True
        wire.cut_all()
        asked = [queued(store) for _ in range(5 * BATCH)]
        async with asyncio.timeout(4.0 * 3):
            found = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each) for each in found} == {StoreAway}
        wire.closed = False
        await queued(store)
        await store.close()


async def test_x2_who_follows_what_may_have_been_written_looks(
    address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notice of it was taken for one of a change whose answer has come."""
    monkeypatch.setattr(writer, "PATIENCE_S", 0.5)
    async with Wire(address) as wire:
        store = await open_at(wire.address)
        task = await running(store)
        feed = Feed(store)
        async with feed.of_task(task.id, {EventKind.FINISHED}) as bell:
            bell.clear()
            wire.cut, wire.closed = Cut.AFTER, True
            with pytest.raises(StoreAway, match="not known whether"):
                await store.finish(task.id, 1, ENDINGS["exit"])
            async with asyncio.timeout(30):
                await bell.wait()
            wire.closed = False
            assert (await get(store, task.id)).state.terminal
        feed.close()
        await store.close()
