"""X2: what is brought to a node is begun there once, or it goes on to whoever can."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from pathlib import Path

import pytest

from backburner.model.ending import Ending
from backburner.model.errors import StoreError
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.node import Node, NodeKind
from backburner.model.states import State
from backburner.model.task import Task
from backburner.runtime.feed import Feed
from backburner.runtime.station import Station
from backburner.runtime.worker import ProcessWorker
from backburner.store.postgres.node import NodeStore, open_node
from tests import postgres_server
from tests.store.conformance.making import ADA, PLACE, PLENTY, get, new_task

pytestmark = pytest.mark.slow


@pytest.fixture
def address() -> Iterator[str]:
    made = postgres_server.server().create()
    yield made
    postgres_server.server().drop(made)


@pytest.fixture
async def store(address: str) -> AsyncIterator[NodeStore]:
    made = await open_node(address, "nd_1")
    yield made
    await made.close()


class Crew:
    """Says of the first so many that something is wrong with this machine."""

    full = False

    def __init__(self, store: NodeStore, *, faults: int = 0, begins: bool = True) -> None:
        self._store = store
        self._faults = faults
        self._begins = begins
        self.came: asyncio.Queue[str] = asyncio.Queue()
        """What was begun at once, or taken up: the latter also where a fetch saw the job of a task

        and not yet the task."""
        self.followed = asyncio.Event()

    def unfit(self, task: Task) -> str | None:
        self._faults -= 1
        if self._faults >= 0:
            raise OSError("the disk of the home is away")
        return None

    async def begin_now(self, task: Task) -> bool:
        if self._begins:
            assert await self._store.claim(task.id, task.attempt, PLACE) is not None
            self.came.put_nowait(task.id)
        return self._begins

    def take_up(self, task: Task) -> None:
        self.came.put_nowait(task.id)

    def at_work(self) -> list[Task]:
        return []

    async def follow_record(self) -> None:
        self.followed.set()


@contextlib.asynccontextmanager
async def at_work(
    store: NodeStore, home: Home, crew: Crew, *, silent_s: float = 600
) -> AsyncGenerator[None]:
    node = Node(
        store.node, NodeKind.WORKER, "here", 1, queues=("default",), places=4, silent_s=silent_s
    )
    feed = Feed(store)
    station = Station(store, home, Settings(), feed=feed, node=node, crew=crew, report=print)
    running = asyncio.create_task(station.run())
    try:
        await station.known()
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])
        await station.leave()
        feed.close()


async def test_x2_a_drain_before_it_has_begun_leaves_the_last_process_on_record(
    store: NodeStore, address: str, tmp_path: Path
) -> None:
    """What that one was given, and has not taken, is found by its number."""
    node = Node(store.node, NodeKind.WORKER, "here", 1)
    await store.put_node(node, 7)
    feed = Feed(store)
    crew, home = Crew(store), Home(tmp_path, address)
    station = Station(store, home, Settings(), feed=feed, node=node, crew=crew, report=print)
    await station.drain()
    assert await store.quiet_s(7) is not None
    feed.close()


async def test_x2_what_is_over_is_looked_for_also_where_the_record_cannot_be_written(
    store: NodeStore, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = Crew(store)
    async with at_work(store, Home(tmp_path, address), crew, silent_s=1):

        async def refused(*_: object) -> bool:
            raise StoreError("the disk of the database is full")

        monkeypatch.setattr(NodeStore, "is_worker", refused)
        crew.followed.clear()
        async with asyncio.timeout(60):
            await crew.followed.wait()


async def test_x2_a_machine_that_cannot_say_whether_it_may_loses_nothing(
    store: NodeStore, address: str, tmp_path: Path
) -> None:
    """Nobody would be taken for dead in time."""
    crew = Crew(store, faults=2)
    async with at_work(store, Home(tmp_path, address), crew):
        tasks = [await store.create(new_task(), limit=PLENTY) for _ in range(3)]
        async with asyncio.timeout(60):
            came = [await crew.came.get() for _ in tasks]
        assert sorted(came) == sorted(task.id for task in tasks)
        for task in tasks:
            assert await store.finish(task.id, 1, Ending.canceled()) is not None
        assert crew.came.empty()


async def test_x2_what_cannot_begin_at_once_is_with_its_node(
    store: NodeStore, address: str, tmp_path: Path
) -> None:
    crew = Crew(store, begins=False)
    async with at_work(store, Home(tmp_path, address), crew):
        task = await store.create(new_task(), limit=PLENTY)
        async with asyncio.timeout(60):
            assert await crew.came.get() == task.id
        assert [each.id for each in await store.kept()] == [task.id]


@pytest.mark.parametrize("stop", [False, True])
async def test_x2_what_was_not_taken_is_not_ended_here(
    store: NodeStore, address: str, tmp_path: Path, *, stop: bool
) -> None:
    """What it was to be started with is gone: another machine may have it, and have begun."""
    worker = ProcessWorker(store, Home(tmp_path, address), Settings(), print)
    task = await store.create(new_task(), limit=PLENTY)
    assert await store.claim(task.id, 1, PLACE) is not None
    if stop:
        await store.request_stop(task.id, ADA, 30.0)
    assert not await worker.start_now(await get(store, task.id))
    assert (await get(store, task.id)).state is State.RUNNING
    await worker.close()


async def test_x2_who_leaves_is_there_until_the_ends_are_written_that_it_has_begun_to_write(
    store: NodeStore, tmp_path: Path
) -> None:
    """Their files may still be on their way; without a node the task would seem to be orphaned."""
    crew, there = Crew(store), asyncio.Event()

    async def bring(_: Task) -> None:
        await there.wait()

    store.before_end.append(bring)
    async with contextlib.AsyncExitStack() as open_now:
        await open_now.enter_async_context(at_work(store, Home(tmp_path, store.address), crew))
        store.has_left = lambda _task, _attempt: True
        await store.create(new_task("bg_ends"), limit=PLENTY)
        assert await crew.came.get() == "bg_ends"
        if (await get(store, "bg_ends")).state is State.QUEUED:  # see `came`
            assert await store.claim("bg_ends", 1, PLACE) is not None
        ending = asyncio.ensure_future(store.finish("bg_ends", 1, Ending.succeeded(exit_code=0)))
        leaving = asyncio.create_task(open_now.aclose())
        assert not (await asyncio.wait([ending, leaving], timeout=0.5))[0]
        there.set()
        await leaving
        assert await ending is not None
