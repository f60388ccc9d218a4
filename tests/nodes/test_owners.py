"""X10, E3, D9, X1: what owners have of machines that they share, and what lies in the record."""

import asyncio
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from backburner import Backburner
from backburner.app import Session, Task
from backburner.model.signals import SignalState
from backburner.model.states import ErrorKind, State
from backburner.model.task import Place
from backburner.model.task import Task as Record
from backburner.store.postgres.node import NodeStore, open_node
from backburner.store.protocol import Scope
from backburner.work.sealing import VARIABLE
from tests.nodes.conftest import NewWorker
from tests.receiver import Receiver, receiver
from tests.store.conformance.making import PLACE, PLENTY, new_task
from tests.store.postgres.test_database import run
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]

KEY = "a key of this deployment, 32 bytes"


def counting(folder: Path, name: str) -> str:
    """A command that notes how many of its kind run beside it, itself included."""
    return (
        f"mkdir -p {folder}/{name}; touch {folder}/{name}/$$; ls {folder}/{name} | wc -l >> "
        f"{folder}/{name}.log; sleep 0.2; ls {folder}/{name} | wc -l >> {folder}/{name}.log; "
        f"rm {folder}/{name}/$$"
    )


def most_at_once(folder: Path, name: str) -> int:
    return max(int(line) for line in (folder / f"{name}.log").read_text().split())


async def all_ended(tasks: list[Task]) -> None:
    for task in tasks:
        await task.wait(timeout=100)
        assert task.state is State.SUCCEEDED, task.error


async def test_x10_an_owner_has_so_many_running_on_all_machines_together(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    for _ in range(2):
        new_worker()
    await shared.set_owner_limit("ada", 3)
    sessions = [shared.session(name, owner="ada") for name in ("one", "two")]
    tasks = [await sessions[n % 2].run(counting(tmp_path, "ada")) for n in range(12)]
    others = [
        await shared.session("chat", owner="bob").run(counting(tmp_path, "bob")) for _ in range(2)
    ]
    await all_ended(tasks + others)
    assert 1 < most_at_once(tmp_path, "ada") <= 3


async def test_x10_a_place_that_an_attempt_gives_up_goes_to_what_was_taken_for_it(
    address: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing ends: what had it is to be tried again."""
    monkeypatch.setenv("BACKBURNER_TOOLS_PER_WORKER", "1")
    claim, refused = NodeStore.claim, list[str]()

    async def noted(store: NodeStore, task_id: str, attempt: int, place: Place) -> Record | None:
        claimed = await claim(store, task_id, attempt, place)
        if claimed is None:
            refused.append(task_id)
        return claimed

    monkeypatch.setattr(NodeStore, "claim", noted)
    ada, go = Scope("ada"), asyncio.Event()
    other = await open_node(address, "nd_other")
    async with Backburner.open(address) as bb, Backburner.open(address) as elsewhere:
        bb.tool(background=True)(go.wait)
        bb.tool(background=True)(_shout)
        holds = await bb.session("chat", owner="bob").spawn("wait")
        runs = await other.create(new_task(scope=ada), limit=PLENTY)
        assert await other.claim(runs.id, 1, PLACE) is not None

        async def is_offered() -> bool:
            return "_shout" in [offer.name for offer in await other.offers()]

        await wait_until_async(is_offered)
        task = await elsewhere.session("chat", owner="ada").spawn("_shout")
        taken = f"SELECT node IS NOT NULL FROM task WHERE id = '{task.id}'"
        await wait_until_async(lambda: run(address, taken) == [(True,)])
        await bb.set_owner_limit("ada", 1)
        go.set()
        await holds.wait(60)
        for _ in range(3):  # ends, for the last of which nothing here still moves
            before = len(refused)
            ended = await other.create(new_task(scope=Scope("bob")), limit=PLENTY)
            await other.request_stop(ended.id, Scope("bob"), 0)
            await wait_until_async(partial(_longer_than, refused, before))
        assert set(refused) == {task.id}
        assert await other.requeue(runs.id, 1, "its machine was not heard of") is not None
        assert (await task.wait(60)).state is State.SUCCEEDED
        await other.request_stop(runs.id, ada, 0)
    await other.close()


def _longer_than(words: list[str], count: int) -> bool:
    return len(words) > count


async def _shout() -> str:
    return "done"


async def test_e3_a_worker_has_so_many_at_once_and_all_of_them_have_their_turn(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    """The first owner has many more than there are places; the others do not wait for them all."""
    new_worker("--concurrency", "2")
    hog = shared.session("chat", owner="hog")
    many = [await hog.run(counting(tmp_path, "all")) for _ in range(40)]
    few = [
        await shared.session("chat", owner=name).run(counting(tmp_path, "all"))
        for name in ("ada", "zoe")
    ]
    await all_ended(few)
    waiting = [task for task in many if (await task.refresh()).state is State.QUEUED]
    assert len(waiting) >= 10, "they came before most of those that were there first"
    await all_ended(many)
    assert most_at_once(tmp_path, "all") <= 2


# What a start is given


@pytest.fixture
def sealing(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(VARIABLE, KEY.replace(" ", "-"))
    return os.environ[VARIABLE]


def whole_record(address: str) -> str:
    with psycopg.connect(address, autocommit=True) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'backburner'"
        ).fetchall()
        return "".join(
            repr(connection.execute(f"SELECT * FROM backburner.{name}".encode()).fetchall())
            for (name,) in tables
        )


def secrets_kept(address: str) -> int:
    with psycopg.connect(address, autocommit=True) as connection:
        return len(connection.execute("SELECT FROM backburner.secret").fetchall())


async def test_d9_what_env_gives_is_nowhere_but_with_the_command(
    sealing: str, shared: Backburner, address: str, new_worker: NewWorker, tmp_path: Path
) -> None:
    session = shared.session("chat", owner="ada")
    command = (
        f'echo "got ${{#API_TOKEN}} ${{BACKBURNER_SECRET-nothing}}"; touch {tmp_path}/began; '
        f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    )
    task = await session.run(command, env={"API_TOKEN": "hunter2hunter2"})
    assert secrets_kept(address) == 1
    assert "hunter2" not in whole_record(address), "not even where it is kept"
    new_worker()
    await wait_until_async((tmp_path / "began").exists)
    await wait_until_async(lambda: secrets_kept(address) == 0)
    (tmp_path / "go").touch()
    await task.wait(timeout=60)
    assert (await task.output()).text == "got 14 nothing\n"
    assert "hunter2" not in whole_record(address)


async def test_d9_a_machine_with_another_key_starts_nothing_and_says_why(
    sealing: str,
    shared: Backburner,
    address: str,
    new_worker: NewWorker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = await shared.session("chat").run("true", env={"API_TOKEN": "hunter2hunter2"})
    monkeypatch.setenv(VARIABLE, "another-key-of-another-deployment")
    new_worker()
    await task.wait(timeout=60)
    assert task.error is not None
    assert task.error.kind is ErrorKind.SPAWN
    assert f"another {VARIABLE}" in task.error.message
    assert secrets_kept(address) == 0


# Channels


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiver() as started:
        yield started


@pytest.fixture
async def hooked(
    sealing: str, shared: Backburner, server: Receiver, monkeypatch: pytest.MonkeyPatch
) -> tuple[Session, str]:
    """A session whose signals go to the receiver too, and the key."""
    key = await shared.add_channel("web", webhook=server.url(), allow_private=True, owner="ada")
    assert key is not None
    monkeypatch.setenv("BACKBURNER_DELIVERY_RETRY_S", "0.1")
    return shared.session("chat", owner="ada"), key


async def test_x1_a_webhook_is_called_once_by_whichever_machine_lives(
    hooked: tuple[Session, str],
    shared: Backburner,
    server: Receiver,
    address: str,
    new_worker: NewWorker,
) -> None:
    session, key = hooked
    assert key not in whole_record(address)
    assert await shared.test_channel("web", owner="ada") is None
    server.received.clear()
    workers = [new_worker() for _ in range(2)]
    tasks = [await session.run("true") for _ in range(6)]
    await all_ended(tasks)
    server.wait_for(6)
    await wait_until_async(lambda: pushed_all(shared, session, 6))
    assert sorted(got.key for got in server.received) == sorted(
        f"{task.id}:end@web" for task in tasks
    )
    assert server.received[0].verified(key)["type"] == "backburner.task.completed"
    await asyncio.to_thread(workers[0].kill)
    after = await session.run("true")
    await after.wait(timeout=100)
    server.wait_for(7)
    await shared.remove_channel("web", owner="ada")
    assert secrets_kept(address) == 0


async def pushed_all(shared: Backburner, session: Session, count: int) -> bool:
    signals = await shared.store.signals(session.scope, channel="web", limit=100)
    return [signal.state for signal in signals] == [SignalState.DELIVERED] * count


async def test_x1_a_receiver_that_fails_is_tried_again_by_the_machines(
    hooked: tuple[Session, str], shared: Backburner, server: Receiver, new_worker: NewWorker
) -> None:
    session, _ = hooked
    server.answer = 500
    new_worker()
    task = await session.run("true")
    await task.wait(timeout=60)
    server.wait_for(2)
    server.answer = None
    await wait_until_async(lambda: pushed_all(shared, session, 1))
    assert {got.key for got in server.received} == {f"{task.id}:end@web"}
