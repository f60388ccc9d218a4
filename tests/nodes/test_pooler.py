"""X10: behind PgBouncer. A pool of sessions works; one of transactions is for reading alone, and is

refused in a sentence where it was given as the address of the record.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from backburner import Backburner, NotFound, Settings, SignalKind
from backburner.model.errors import StoreAway, StoreUnusable
from backburner.model.states import State
from backburner.store.postgres import connection as connections
from backburner.store.postgres.connection import connect
from backburner.store.postgres.footprint import PROGRAM, READERS, READS
from tests import postgres_server
from tests.cli.program import Program
from tests.faults.victims import processes_with
from tests.nodes.workers import WorkerProcess
from tests.pgbouncer import pgbouncer
from tests.store.postgres.test_database import run

pytestmark = [pytest.mark.slow]


async def test_x10_in_session_mode_programs_and_workers_go_on_as_without_it(
    address: str, home: Path, new_home: Callable[[], Path], tmp_path: Path
) -> None:
    with pgbouncer(address, "session", tmp_path) as pooled:
        worker = WorkerProcess(pooled, new_home())
        try:
            async with Backburner.open(pooled) as bb:
                session = bb.session("chat")
                task = await session.run("echo through the pool")
                await task.wait(timeout=60)
                assert task.state is State.SUCCEEDED
                assert (await task.output()).text == "through the pool\n"
                stopped = await session.run("sleep 1000")
                await stopped.stop()
                assert stopped.state is State.CANCELED
        finally:
            worker.leave()


async def test_x10_a_pooler_that_says_nothing_more_is_hung_up_on_and_asked_again(
    address: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the wire behind it is cut: it holds the line, and has nothing to say."""
    monkeypatch.setattr(connections, "POOLED_SILENCE_S", 1.0)
    with pgbouncer(address, "transaction", tmp_path) as pooled:
        (pid,) = processes_with(str(tmp_path / "pgbouncer.ini"))
        async with Backburner.open(address, settings=Settings(pooler=pooled)) as bb:
            task = await bb.session("chat").run("true")
            assert await bb.session("chat").tasks()
            os.kill(pid, signal.SIGSTOP)
            reading = [asyncio.create_task(bb.session("chat").tasks()) for _ in range(READERS + 1)]
            assert not (await asyncio.wait(reading, timeout=2))[0]
            os.kill(pid, signal.SIGCONT)
            for found in await asyncio.gather(*reading):
                assert [each.id for each in found] == [task.id]
            os.kill(pid, signal.SIGSTOP)
            with pytest.raises(StoreAway):
                await bb.session("chat").tasks()
            os.kill(pid, signal.SIGCONT)
            assert await bb.session("chat").tasks()


async def test_x10_in_transaction_mode_it_is_refused(
    address: str, home: Path, tmp_path: Path
) -> None:
    with pgbouncer(address, "transaction", tmp_path) as pooled:
        for _ in range(2):  # also when it was tried before
            with pytest.raises(StoreUnusable, match=r"transaction mode.*pool_mode=session"):
                async with Backburner.open(pooled):
                    pass


@contextlib.contextmanager
def keep_busy(address: str, clients: int) -> Generator[None]:
    """Others have short transactions through the pooler, one after the other."""
    over = threading.Event()

    def keep_on() -> None:
        with psycopg.connect(address, autocommit=True, prepare_threshold=None) as connection:
            while not over.is_set():
                with connection.transaction():
                    connection.execute("SELECT pg_sleep(random() * 0.01)")
                over.wait(0.002)

    strangers = [threading.Thread(target=keep_on) for _ in range(clients)]
    for stranger in strangers:
        stranger.start()
    try:
        yield
    finally:
        over.set()
        for stranger in strangers:
            stranger.join()


@pytest.mark.parametrize("clients", [1, 4])
async def test_x10_in_transaction_mode_it_is_refused_however_busy_the_pooler_is(
    address: str, backburner: Program, tmp_path: Path, clients: int
) -> None:
    """Whoever looks once meets their session of before by chance, now and then."""
    with pgbouncer(address, "transaction", tmp_path) as pooled, keep_busy(pooled, clients):
        for _ in range(60):
            with pytest.raises(StoreUnusable, match=r"transaction mode.*pool_mode=session"):
                connect(pooled)
        started = backburner("run", "--home", pooled, "--", "true")
        assert (started.code, started.out) == (1, "")
        assert "a pooler in transaction mode" in started.err
        assert "pool_mode=session" in started.err
    assert run(address, "SELECT count(*) FROM task") == [(0,)]


async def test_x10_a_worker_behind_a_busy_pooler_in_transaction_mode_ends_and_says_why(
    address: str, home: Path, new_home: Callable[[], Path], tmp_path: Path
) -> None:
    with (
        pgbouncer(address, "transaction", tmp_path) as pooled,
        keep_busy(pooled, 4),
        pytest.raises(AssertionError, match="a pooler in transaction mode"),
    ):
        WorkerProcess(pooled, new_home())
    assert run(address, "SELECT count(*) FROM node") == [(0,)]


ASK = f"{sys.executable} -m backburner.cli ask 'Which?'"

NO_SESSION = "server_lifetime = 0"
"""Each transaction gets a session that nobody has had."""


async def test_x10_over_a_pool_of_transactions_everything_is_read(
    address: str, home: Path, new_home: Callable[[], Path], tmp_path: Path
) -> None:
    """By a worker and by a program, which do with it all that they do without."""
    with pgbouncer(address, "transaction", tmp_path, NO_SESSION) as pooled:
        worker = WorkerProcess(address, new_home(), BACKBURNER_POOLER=pooled)
        try:
            async with Backburner.open(address, settings=Settings(pooler=pooled)) as bb:
                session = bb.session("chat", owner="ada")
                task = await session.run(f"echo $BACKBURNER_POOLER; {ASK}")
                async for signal in session.signals():
                    assert signal.record.kind is SignalKind.INPUT_REQUIRED
                    await task.send("this")
                    await signal.ack()
                    break
                await task.wait(timeout=60)
                assert task.state is State.SUCCEEDED
                assert (await task.output()).text == "\nthis\n"
                assert [each.id for each in await session.tasks()] == [task.id]
                assert await bb.session("chat", owner="bob").tasks() == []
                with pytest.raises(NotFound):
                    await bb.session("chat", owner="bob").task(task.id)
                stopped = await session.run("sleep 1000")
                await stopped.stop()
                assert stopped.state is State.CANCELED
        finally:
            worker.leave()


async def test_x10_over_a_pool_of_transactions_a_program_has_two_connections_of_its_own(
    address: str, home: Path, tmp_path: Path
) -> None:
    with pgbouncer(address, "transaction", tmp_path) as pooled:
        at = f"{address}?application_name=program"
        through = f"{pooled}?application_name=pooled"
        async with Backburner.open(at, settings=Settings(pooler=through)) as bb:
            sessions = [bb.session("chat", owner=f"owner-{number}") for number in range(20)]
            await asyncio.gather(*(session.run("true") for session in sessions))
            found = await asyncio.gather(*(session.tasks() for session in sessions))
            assert [len(tasks) for tasks in found] == [1] * 20
            has = {str(name): count for name, count in run(address, _CONNECTIONS)}
            assert has["program"] == PROGRAM - READS == 2
            assert has["pooled"] in range(1, READERS + 1)


_CONNECTIONS = """SELECT application_name, count(*) FROM pg_stat_activity
    WHERE datname = current_database() GROUP BY application_name"""


async def test_x10_a_pooler_before_another_database_is_refused(
    address: str, home: Path, tmp_path: Path
) -> None:
    other = postgres_server.server().create()
    try:
        with pgbouncer(other, "transaction", tmp_path) as pooled:
            with pytest.raises(StoreUnusable, match="does not lead to the database") as refused:
                async with Backburner.open(address, settings=Settings(pooler=pooled)):
                    pass
            assert "BACKBURNER_POOLER" in str(refused.value.remedy)
    finally:
        postgres_server.server().drop(other)


@pytest.mark.parametrize(
    ("pooler", "code", "said"),
    [
        (
            "pool.example",
            2,
            "BACKBURNER_POOLER: the address of the record is not one of PostgreSQL",
        ),
        ("postgresql://test@127.0.0.1:1/x", 1, "the pooler cannot be reached"),
    ],
)
def test_x10_a_pooler_that_is_none_is_told_of_at_once(
    backburner: Program, monkeypatch: pytest.MonkeyPatch, pooler: str, code: int, said: str
) -> None:
    monkeypatch.setenv("BACKBURNER_POOLER", pooler)
    started = backburner("run", "--", "true")
    assert (started.code, started.out) == (code, "")
    assert said in started.err


async def test_x10_a_pooler_that_restarts_is_waited_for(
    address: str, home: Path, tmp_path: Path
) -> None:
    with pgbouncer(address, "transaction", tmp_path) as pooled:
        bb = await Backburner.open(address, settings=Settings(pooler=pooled)).__aenter__()
        session = bb.session("chat")
        task = await session.run("true")
        assert await session.tasks()
    try:
        reading = asyncio.create_task(session.tasks())
        assert not (await asyncio.wait([reading], timeout=1))[0]
        with pgbouncer(address, "transaction", tmp_path, port=urlsplit(pooled).port):
            assert [each.id for each in await reading] == [task.id]
    finally:
        await bb.__aexit__(None, None, None)


def test_x10_a_doctor_looks_at_the_pooler(
    address: str, backburner: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def found() -> dict[str, str]:
        checks = {each["check"]: each for each in backburner("doctor", "--json").json}
        return checks.get("pooler", {})

    assert found() == {}
    with pgbouncer(address, "transaction", tmp_path) as pooled:
        monkeypatch.setenv("BACKBURNER_POOLER", pooled.replace("test@", "test:secret@"))
        healthy = found()
        assert healthy["level"] == "ok"
        assert pooled in healthy["text"]
    sick = found()
    assert sick["level"] == "fail"
    assert "secret" not in str((healthy, sick))
