"""X10, E3, D9, X1: what owners have of machines that they share, and what lies in the record."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from backburner import Backburner
from backburner.app import Session, Task
from backburner.model.signals import SignalState
from backburner.model.states import ErrorKind, State
from backburner.work.sealing import VARIABLE
from tests.nodes.conftest import NewWorker
from tests.receiver import Receiver, receiver
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
