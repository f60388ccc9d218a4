"""A shared record, an application that has it open, and workers."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from backburner import Backburner
from tests import postgres_server
from tests.cli.program import Program
from tests.nodes.applications import ApplicationProcess
from tests.nodes.workers import WorkerProcess
from tests.nursery import Nursery

NewWorker = Callable[..., WorkerProcess]
NewApplication = Callable[..., ApplicationProcess]


NO_RECORD = pytest.mark.parametrize("address", ["no record"], indirect=True)
"""For a test that begins with an empty database."""


@pytest.fixture
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Of an empty record."""
    server = postgres_server.server()
    made = server.create_empty() if hasattr(request, "param") else server.create()
    yield made
    server.drop(made)


@pytest.fixture
def new_worker(address: str, new_home: Callable[[], Path]) -> Iterator[NewWorker]:
    """Starts a worker on a machine of its own."""
    started: list[WorkerProcess] = []

    def start(
        *options: str, folder: Path | None = None, forked: bool = True, **settings: str
    ) -> WorkerProcess:
        worker = WorkerProcess(
            address, new_home(), *options, folder=folder, forked=forked, **settings
        )
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.leave()


@pytest.fixture
def new_application(address: str, new_home: Callable[[], Path]) -> Iterator[NewApplication]:
    """Starts an application with the tools of `tests.nodes.shop` on a machine of its own."""
    started: list[ApplicationProcess] = []

    def start(**settings: str) -> ApplicationProcess:
        started.append(ApplicationProcess(address, new_home(), **settings))
        return started[-1]

    yield start
    for application in started:
        application.close()


@pytest.fixture
async def shared(home: Path, address: str) -> AsyncIterator[Backburner]:
    async with Backburner.open(address) as opened:
        yield opened


@pytest.fixture
def backburner(
    home: Path, address: str, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> Program:
    """The real program, on a shared record."""
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setenv("BACKBURNER_HOME", address)
    return Program(nursery)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where tools that hold show what becomes of them."""
    made = tmp_path / "folder"
    made.mkdir()
    return made
