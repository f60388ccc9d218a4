"""X10: behind PgBouncer. A pool of sessions works; one of transactions is refused in a sentence."""

import contextlib
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import psycopg
import pytest

from backburner import Backburner
from backburner.model.errors import StoreUnusable
from backburner.model.states import State
from backburner.store.postgres.connection import connect
from tests.cli.program import Program
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
