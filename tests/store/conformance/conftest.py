"""The fixtures of the conformance suite: every test runs once for each engine."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from backburner.store.protocol import Store
from tests.store.conformance.engines import ENGINES, Engine

OpenAnother = Callable[[], Awaitable[Store]]


@pytest.fixture(params=list(ENGINES))
def engine_name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def engine(engine_name: str) -> Engine:
    return ENGINES[engine_name]


@pytest.fixture
async def address(engine: Engine, tmp_path: Path) -> AsyncIterator[str]:
    """Where the record of this test is."""
    address = await engine.create(tmp_path)
    yield address
    await engine.drop(address)


@pytest.fixture
async def open_another(engine: Engine, address: str) -> AsyncIterator[OpenAnother]:
    """Opens one more handle on the record of this test, as another process would."""
    opened: list[Store] = []

    async def open_one() -> Store:
        opened.append(await engine.open(address))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.close()


@pytest.fixture
async def store(open_another: OpenAnother) -> Store:
    """A handle on an empty record."""
    return await open_another()
