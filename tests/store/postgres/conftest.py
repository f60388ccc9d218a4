"""Databases for the tests of what only this store has."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from backburner.store.postgres.store import PostgresStore, open_store
from tests import postgres_server

Open = Callable[[str], Awaitable[PostgresStore]]


@pytest.fixture
def address() -> Iterator[str]:
    """Of a database with an empty record."""
    made = postgres_server.server().create()
    yield made
    postgres_server.server().drop(made)


@pytest.fixture
def empty() -> Iterator[str]:
    """The address of a database without a record."""
    made = postgres_server.server().create_empty()
    yield made
    postgres_server.server().drop(made)


@pytest.fixture
async def open_at() -> AsyncIterator[Open]:
    """Opens a store that is closed after the test."""
    opened: list[PostgresStore] = []

    async def open_one(address: str) -> PostgresStore:
        opened.append(await open_store(address))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(address: str, open_at: Open) -> PostgresStore:
    return await open_at(address)
