"""A shared record, an application that has it open, and workers."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from backburner import Backburner
from tests import postgres_server
from tests.nodes.workers import WorkerProcess

NewWorker = Callable[..., WorkerProcess]


@pytest.fixture
def address() -> str:
    return postgres_server.server().create(fresh=True)


@pytest.fixture
def new_worker(address: str, new_home: Callable[[], Path]) -> Iterator[NewWorker]:
    """Starts a worker on a machine of its own."""
    started: list[WorkerProcess] = []

    def start(*options: str) -> WorkerProcess:
        started.append(WorkerProcess(address, new_home(), *options))
        return started[-1]

    yield start
    for worker in started:
        worker.leave()


@pytest.fixture
async def shared(home: Path, address: str) -> AsyncIterator[Backburner]:
    async with Backburner.open(address) as opened:
        yield opened
