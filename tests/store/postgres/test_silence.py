"""X2: a database that hangs, instead of dying, is noticed: nobody waits for it without an end."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator

import procrastinate
import psycopg
import pytest

from backburner.model.errors import StoreAway, StoreBusy
from backburner.store.news import News
from backburner.store.postgres import reader, silence, writer
from backburner.store.postgres.engine_connection import EngineConnection
from backburner.store.postgres.node import open_node
from tests.postgres_server import Server
from tests.store.conformance.making import PLACE, queued
from tests.store.postgres.conftest import Open
from tests.store.postgres.proxy import Wire
from tests.store.postgres.test_claiming import backend, until_idle
from tests.waiting import pause, pause_async, wait_until, wait_until_async

SOON_S = 40.0
"""Several times as long as what is waited for here; without an end it takes longer."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (silence.Connection, silence.AsyncConnection):
        monkeypatch.setattr(kind, "silence_s", 2.0)
    for module in (reader, writer):
        monkeypatch.setattr(module, "PATIENCE_S", 2.0)


async def test_x2_who_asks_a_database_that_hangs_hears_so_and_can_close_the_record(
    address: str, open_at: Open
) -> None:
    async with Wire(address) as wire:
        store = await open_at(wire.address)
        await queued(store)
        wire.silent = True
        asked = [*(queued(store) for _ in range(3)), *(store.get("bg_1") for _ in range(12))]
        async with asyncio.timeout(SOON_S):
            found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in found] == [StoreAway] * len(asked)
        assert "not known whether" in str(found[0])
        late = asyncio.create_task(queued(store))
        async with asyncio.timeout(SOON_S):
            await store.close()
        with pytest.raises(StoreAway):
            await late


async def test_x2_a_claim_that_nobody_answers_ends_and_the_next_one_holds(address: str) -> None:
    async with Wire(address) as wire:
        node = await open_node(wire.address, "nd_here")
        first, *tasks = [await queued(node, f"bg_{number}") for number in range(3)]
        await until_idle(node)
        assert await node.claim(first.id, 1, PLACE) is not None
        await wait_until_async(lambda: backend(node) is not None)
        wire.silent = True
        async with asyncio.timeout(SOON_S):
            with pytest.raises(StoreAway):
                await node.claim(tasks[0].id, 1, PLACE)
        wire.silent = False
        assert await node.claim(tasks[1].id, 1, PLACE) is not None
        await node.close()


async def test_x2_what_the_engine_asks_is_asked_again_where_nobody_answers(address: str) -> None:
    said: list[str] = []
    async with Wire(address) as wire:
        engine = EngineConnection(wire.address, said.append)
        async with procrastinate.App(connector=engine).open_async():
            await engine.execute_query_async("SELECT 1")
            wire.silent = True
            asking = asyncio.create_task(engine.execute_query_one_async("SELECT 2 AS two"))
            await wait_until_async(lambda: bool(said), message="nobody has noticed")
            wire.silent = False
            async with asyncio.timeout(SOON_S):
                assert await asking == {"two": 2}


async def test_a_statement_that_may_take_long_is_waited_for(address: str) -> None:
    """A migration, for one."""
    with silence.Connection.connect(address, autocommit=True) as connection:
        connection.silence_s = 60.0
        assert connection.execute("SELECT 1 FROM pg_sleep(4)").fetchall() == [(1,)]
        connection.silence_s = 1.0
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT pg_sleep(60)")


async def test_x2_a_long_answer_on_a_slow_wire_is_waited_for_until_nothing_of_it_comes(
    address: str,
) -> None:
    length = 4_000_000
    async with Wire(address) as wire:
        asking = silence.AsyncConnection.connect(wire.address, autocommit=True)
        async with await asking as connection:
            wire.late_s = 0.1  # for each 64 KiB
            begun = asyncio.get_running_loop().time()
            answer = await connection.execute(f"SELECT repeat('x', {length})".encode())
            assert await answer.fetchone() == ("x" * length,)
            took_s = asyncio.get_running_loop().time() - begun
            assert took_s > 2 * connection.silence_s
            asking = asyncio.create_task(
                connection.execute(f"SELECT repeat('x', {length})".encode())
            )
            await pause_async(took_s / 3, because="it is in the middle of the answer")
            wire.silent = True
            async with asyncio.timeout(SOON_S):
                with pytest.raises(psycopg.OperationalError):
                    await asking


def test_x2_who_looks_after_connections_goes_when_nobody_asks_and_is_there_for_the_next(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever that comes: also in the moment that it goes."""
    monkeypatch.setattr(silence, "_GOES_AFTER_S", 0.01)
    monkeypatch.setattr(silence, "_LOOKS_EVERY_S", 0.01)
    monkeypatch.setattr(silence.Connection, "silence_s", 0.3)
    for number in range(12):
        with silence.Connection.connect(address, autocommit=True) as connection:
            pause(0.02 * number / 12, because="it goes after half of that, or is about to")
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT pg_sleep(60)")
    wait_until(lambda: "backburner-silence" not in {each.name for each in threading.enumerate()})


WAITS_FOR_ANOTHER = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@contextlib.asynccontextmanager
async def commits_hang(server: Server) -> AsyncGenerator[None]:
    """They wait for a server that is gone; what only reads is answered."""

    async def commit() -> None:
        async with await psycopg.AsyncConnection.connect(
            server.address("postgres"), autocommit=True
        ) as other:
            while True:
                await other.execute("CREATE TABLE probe ()")
                await other.execute("DROP TABLE probe")

    server.run("ALTER SYSTEM SET synchronous_standby_names = 'gone'")
    server.run("SELECT pg_reload_conf()")
    committing = asyncio.create_task(commit())
    try:
        await wait_until_async(lambda: server.run(WAITS_FOR_ANOTHER))
        yield
    finally:
        with psycopg.connect(server.address("postgres"), autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")
        committing.cancel()
        await asyncio.wait([committing])


async def test_x2_a_commit_that_hangs_is_told_to_be_unknown_and_is_heard_of_when_it_is_made(
    own_server: Server, open_at: Open
) -> None:
    """The lock is held until then: who comes after it hears that there is no turn."""
    store = await open_at(f"{own_server.create()}?options=-c%20lock_timeout%3D500ms")
    heard: list[News | None] = []
    store.on_news(heard.append)
    async with commits_hang(own_server):
        async with asyncio.timeout(SOON_S):
            with pytest.raises(StoreAway, match="not known whether"):
                await queued(store, "bg_first")
            assert None in heard, "who follows it here looks"
            with pytest.raises(StoreBusy):
                await queued(store, "bg_second")
        assert await store.get("bg_first") is None, "it is not seen yet"
        heard.clear()
    await wait_until_async(lambda: any(_tells_of(each, "bg_first") for each in heard))
    assert await store.get("bg_first") is not None
    assert (await queued(store, "bg_second")).id == "bg_second"


def _tells_of(news: News | None, task: str) -> bool:
    return news is not None and any(each == task for each, _ in news.events)
