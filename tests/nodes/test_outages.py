"""X2, E11: nodes whose database is away, that drain for long, or that the engine has forgotten."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from backburner import Backburner, EventKind, StoreAway, Task, TimeIsUp
from backburner.cli.commands.logs import command as logs_command
from backburner.cli.commands.wait import command as wait_command
from backburner.cli.following import Reading, follow
from backburner.model.states import ErrorKind, State
from backburner.store.postgres import reader, writer
from tests.nodes.conftest import NewWorker
from tests.nodes.workers import WorkerProcess
from tests.postgres_server import Server
from tests.waiting import pause_async, wait_until_async

pytestmark = [pytest.mark.slow]

DEAD_AFTER_S = 8
"""Less, and a busy machine is silent for so long that has done nothing wrong."""


def until_told(folder: Path, name: str) -> str:
    """A command that ends when the test says so."""
    return f"touch {folder}/{name}; until [ -e {folder}/go ]; do sleep 0.1; done; echo {name}"


@pytest.fixture
def dead_after_s() -> int:
    """Tests in which nobody may be taken for dead say more."""
    return DEAD_AFTER_S


@pytest.fixture
def two_workers(
    own_server: Server, new_home: Callable[[], Path], dead_after_s: int
) -> Iterator[tuple[str, list[WorkerProcess]]]:
    """The address of their record, and they."""
    address = own_server.create()
    workers = [
        WorkerProcess(
            address, new_home(), "--dead-after", str(dead_after_s), "--queue", name, "--queue",
            "default",
        )
        for name in ("one", "two")
    ]  # fmt: skip
    yield address, workers
    for worker in workers:
        worker.leave()
    lines = [line for worker in workers for line in worker.said().splitlines()]
    assert [line for line in lines if not line.startswith("backburner: ")] == []


@pytest.fixture
async def bb(home: Path, two_workers: tuple[str, list[WorkerProcess]]) -> AsyncIterator[Backburner]:
    async with Backburner.open(two_workers[0]) as opened:
        yield opened


async def test_e11_a_database_that_was_away_for_long_makes_nobody_dead(
    bb: Backburner, own_server: Server, two_workers: tuple[str, list[WorkerProcess]], tmp_path: Path
) -> None:
    """Longer than a node may be silent; each of them is heard of again before it is judged."""
    session = bb.session("chat")
    tasks: list[Task] = []
    for name in ("one", "two"):
        await bb.set_queue(name, 5)
        tasks.append(await session.run(until_told(tmp_path, name), queue=name))
        await wait_until_async((tmp_path / name).exists)
    await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
    await pause_async(DEAD_AFTER_S * 2, because="longer than a node may be silent")
    own_server.start()
    after = await session.run("echo after")
    await after.wait(timeout=60)
    await pause_async(DEAD_AFTER_S * 2, because="who has no heartbeat any more would be dead")
    (tmp_path / "go").touch()
    said = [worker.said for worker in two_workers[1]]
    for task in tasks:
        await task.wait(timeout=60)
        assert (task.state, task.record.attempt) == (State.SUCCEEDED, 1), [each() for each in said]
    assert len(await session.told()) == 3


async def test_e11_a_clock_that_jumps_makes_nobody_dead(
    bb: Backburner, two_workers: tuple[str, list[WorkerProcess]], new_home: Callable[[], Path]
) -> None:
    """As a machine that was suspended with the database on it finds it: everybody was last heard of

    long ago. Who is dead is found all the same, before it and after it.
    """
    address = two_workers[0]
    session = bb.session("chat")
    await bb.set_queue("lost", 5)
    third = WorkerProcess(address, new_home(), "--dead-after", str(DEAD_AFTER_S), "--queue", "lost")

    async def is_found_dead() -> None:
        task = await session.run("sleep 3600", queue="lost")
        await wait_until_async(lambda: has_begun(task))
        third.kill()
        await task.wait(timeout=60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED

    await is_found_dead()
    third.start()
    tasks = [await session.run("sleep 3600") for _ in range(6)]
    for task in tasks:
        await wait_until_async(partial(has_begun, task))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "UPDATE backburner.node SET seen_at = seen_at - interval '1 hour'; "
            "UPDATE backburner.procrastinate_workers "
            "SET last_heartbeat = last_heartbeat - interval '1 hour'"
        )
    await is_found_dead()
    third.start()
    assert [(await task.refresh()).state for task in tasks] == [State.RUNNING] * len(tasks)
    for task in tasks:
        await task.stop(force=True)
    third.leave()


async def has_begun(task: Task) -> bool:
    return (await task.refresh()).state is State.RUNNING


@pytest.mark.usefixtures("impatient")
async def test_x2_whoever_waits_or_follows_bears_an_outage_and_says_so_once(
    bb: Backburner,
    own_server: Server,
    two_workers: tuple[str, list[WorkerProcess]],
    tmp_path: Path,
    seen: "Seen",
) -> None:
    """Also where it looks in the middle of it, and that look is given up. A write is refused."""
    address = two_workers[0]
    session = bb.session("chat")
    task = await session.run(f"echo before; {until_told(tmp_path, 'one')}")
    await wait_until_async((tmp_path / "one").exists)
    where = {"as_json": False, "home": address, "session": "chat"}
    options = {"lines": None, "since": None, "grep": None, "stderr": False, "raw": False}
    commands = [
        asyncio.create_task(asyncio.to_thread(partial(work, **where)))
        for work in (
            partial(wait_command, [task.id], timeout=None, until="end"),
            partial(logs_command, task.id, keep_on=True, **options),
        )
    ]
    await wait_until_async(lambda: "before" in seen.out)
    await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
    again = Task(bb, task.record)
    following: list[asyncio.Task[Any]] = [
        asyncio.create_task(each)
        for each in (_waited(again), _last(again.events()), _last(follow(bb, again, Reading())))
    ]
    told = asyncio.create_task(anext(session.signals()))
    with pytest.raises(TimeIsUp):
        await task.wait(timeout=0.5)
    with pytest.raises(StoreAway, match="cannot be reached"):
        await session.run("true")
    await wait_until_async(lambda: seen.err.count("waits for it") == len(commands))
    assert not any(each.done() for each in (*commands, *following, told))
    own_server.start()
    await wait_until_async(lambda: seen.err.count("is back") == len(commands))
    (tmp_path / "go").touch()
    assert await asyncio.gather(*commands) == [0, 0]
    _, event, chunk = await asyncio.gather(*following)
    assert again.state is State.SUCCEEDED
    assert (event.kind, chunk.complete) == (EventKind.FINISHED, True)
    assert (await told).task == task.id
    assert seen.out == "before\none\n"
    assert seen.err.count("waits for it") == len(commands)
    assert seen.logged == [], "who has set up no log has it on the terminal"


class Seen:
    """What was written to the terminal so far, and what a library has put into a log."""

    def __init__(self, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
        self._capfd = capfd
        self._caplog = caplog
        self._out = self._err = ""

    def _read(self) -> None:
        out, err = self._capfd.readouterr()
        self._out += out
        self._err += err

    @property
    def out(self) -> str:
        self._read()
        return self._out

    @property
    def logged(self) -> list[str]:
        said = self._caplog.records
        return [each.getMessage() for each in said if each.name.startswith("psycopg")]

    @property
    def err(self) -> str:
        self._read()
        return self._err


@pytest.fixture
def seen(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Seen:
    return Seen(capfd, caplog)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look and each change is given up soon."""
    for module in (reader, writer):
        monkeypatch.setattr(module, "PATIENCE_S", 0.2)


async def _waited(task: Task) -> Any:
    return await task.wait()


async def _last(pieces: AsyncIterator[Any]) -> Any:
    return [each async for each in pieces][-1]


@pytest.mark.parametrize("dead_after_s", [60])
async def test_x2_a_node_that_restarts_while_the_database_is_down_comes_back(
    bb: Backburner, own_server: Server, two_workers: tuple[str, list[WorkerProcess]], tmp_path: Path
) -> None:
    await bb.set_queue("one", 5)
    task = await bb.session("chat").run(until_told(tmp_path, "one"), queue="one")
    await wait_until_async((tmp_path / "one").exists)
    worker = two_workers[1][0]
    await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
    await asyncio.to_thread(worker.kill)
    worker.begin()
    await wait_until_async(lambda: "will try again" in worker.said())
    own_server.start()
    await asyncio.to_thread(worker.until_ready)
    (tmp_path / "go").touch()
    await task.wait(timeout=60)
    assert (task.state, task.record.attempt) == (State.SUCCEEDED, 1), (task.error, worker.said())


@pytest.mark.parametrize("dead_after_s", [60])
async def test_x2_so_does_one_that_had_nothing_to_do_yet(
    own_server: Server, two_workers: tuple[str, list[WorkerProcess]]
) -> None:
    worker = two_workers[1][0]
    await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
    await asyncio.to_thread(worker.kill)
    worker.begin()
    await wait_until_async(
        lambda: "will try again" in worker.said() or worker.process.poll() is not None
    )
    own_server.start()
    await asyncio.to_thread(worker.until_ready)


@pytest.mark.parametrize("dead_after_s", [60])
async def test_x2_a_node_says_once_that_it_waits_for_its_database_and_once_that_it_is_back(
    own_server: Server, two_workers: tuple[str, list[WorkerProcess]]
) -> None:
    """And so does what carries out its tools."""
    worker = two_workers[1][0]

    def times(words: str) -> int:
        return worker.said().count(words)

    await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
    await wait_until_async(lambda: times("the engine waits") > 0)
    await pause_async(3, because="everything that asks meanwhile could say it too")
    own_server.start()
    await wait_until_async(lambda: times("has the database again") == times("the engine waits"))
    assert times("the engine waits") <= 2, worker.said()


async def test_e11_a_node_that_drains_for_long_is_not_dead(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    soon = ("--dead-after", str(DEAD_AFTER_S))
    draining, _ = new_worker(*soon), new_worker("--queue", "nothing", *soon)
    task = await shared.session("chat").run(until_told(tmp_path, "one"))
    await wait_until_async((tmp_path / "one").exists)
    draining.drain()
    await pause_async(DEAD_AFTER_S * 2.5, because="longer than a node may be silent")
    (tmp_path / "go").touch()
    await task.wait(timeout=60)
    assert task.state is State.SUCCEEDED, draining.said()
    await asyncio.to_thread(draining.process.wait, 60)
    assert draining.process.returncode == 0, draining.said()


async def test_x2_a_node_that_the_engine_has_forgotten_begins_anew(
    shared: Backburner, new_worker: NewWorker, address: str, tmp_path: Path
) -> None:
    """So does whoever starts while this one is cut off."""
    worker = new_worker("--dead-after", str(DEAD_AFTER_S))
    session = shared.session("chat")
    running = await session.run(until_told(tmp_path, "one"))
    await wait_until_async((tmp_path / "one").exists)
    with psycopg.connect(address) as connection:
        connection.execute("DELETE FROM backburner.procrastinate_workers")
    await wait_until_async(lambda: "begins anew" in worker.said())
    later = await session.run("echo later")
    await later.wait(timeout=60)
    (tmp_path / "go").touch()
    await running.wait(timeout=60)
    assert (running.state, running.record.attempt) == (State.SUCCEEDED, 1), worker.said()
