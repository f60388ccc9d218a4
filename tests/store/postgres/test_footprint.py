"""X10: a program has as many connections as is said, however much it does at once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator

import procrastinate
import psycopg
import pytest

from backburner.store.postgres.engine_connection import EngineConnection
from backburner.store.postgres.footprint import APPLICATION, ENGINE, PROGRAM, READERS
from backburner.store.postgres.node import NodeStore, open_node
from tests.store.conformance.making import ADA, PLACE
from tests.waiting import wait_until_async

MANY = 4 * (READERS + ENGINE)
_NAMED = "application_name=counted"
_GATE = 4711
"""An advisory lock for those who are to stay where they are."""


class Keeper:
    """Keeps others waiting, and counts them."""

    def __init__(self, address: str) -> None:
        self._connection = psycopg.connect(address, autocommit=True)
        self._looks = psycopg.connect(
            address, autocommit=True
        )  # in a transaction it sees no change

    def count(self, *, waiting: bool = False) -> int:
        """Connections of what is counted; those that wait for us."""
        found = self._looks.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'counted' AND (NOT %s OR wait_event_type = 'Lock')",
            (waiting,),
        )
        return found.fetchall()[0][0]

    @contextlib.contextmanager
    def nobody_reads(self) -> Generator[None]:
        with self._connection.transaction():
            self._connection.execute("LOCK TABLE backburner.task IN ACCESS EXCLUSIVE MODE")
            yield

    @contextlib.contextmanager
    def nobody_passes(self) -> Generator[None]:
        with self._connection.transaction():
            self._connection.execute(f"SELECT pg_advisory_xact_lock({_GATE})".encode())
            yield

    def close(self) -> None:
        self._connection.close()
        self._looks.close()


@pytest.fixture
async def keeper(address: str) -> AsyncIterator[Keeper]:
    keeper = Keeper(address)
    yield keeper
    keeper.close()


@pytest.fixture
async def store(address: str) -> AsyncIterator[NodeStore]:
    store = await open_node(f"{address}?{_NAMED}", "nd_1")
    yield store
    await store.close()


async def test_x10_many_reads_writes_and_questions_at_once_take_what_is_counted(
    address: str, keeper: Keeper, store: NodeStore
) -> None:
    for scope in (None, ADA):
        with keeper.nobody_reads():
            reading = [asyncio.create_task(store.get("bg_none", scope)) for _ in range(MANY)]
            await _wait_for(lambda: keeper.count(waiting=True) == READERS)
        assert await asyncio.gather(*reading) == [None] * MANY
    assert keeper.count() == PROGRAM
    assert await store.claim("bg_none", 1, PLACE) is None
    await _wait_for(lambda: keeper.count() == PROGRAM + 1)

    engine = EngineConnection(f"{address}?{_NAMED}", print)
    passes = f"SELECT pg_advisory_xact_lock_shared({_GATE})"
    async with procrastinate.App(connector=engine).open_async():
        with keeper.nobody_passes():
            asking = [
                asyncio.create_task(engine.execute_query_all_async(passes)) for _ in range(MANY)
            ]
            await _wait_for(lambda: keeper.count(waiting=True) == ENGINE)
        await asyncio.gather(*asking)
        assert keeper.count() == APPLICATION


async def _wait_for(condition: Callable[[], bool]) -> None:
    await wait_until_async(condition)
