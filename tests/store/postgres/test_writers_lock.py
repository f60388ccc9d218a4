"""X2: whoever stops while it holds the lock of the writers keeps the others for a while only."""

import asyncio
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg.pq.abc import PGconn

from backburner.model.errors import StoreBusy
from backburner.store.postgres import writer, writers_lock
from backburner.store.postgres.connection import connect
from backburner.store.postgres.store import PostgresStore
from backburner.store.postgres.writers_lock import WRITERS, begin_locked
from tests import postgres_server
from tests.store.conformance.making import queued
from tests.store.postgres.conftest import Open
from tests.waiting import wait_until_async

Stop = Callable[[PGconn], str]
"""Gives what the database then waits for."""

LOCK = b"SELECT pg_advisory_xact_lock(%d)" % WRITERS
WAITS_FOR = """SELECT 1 FROM pg_stat_activity WHERE pid = {} AND state = 'active'
               AND wait_event = '{}'"""


def hears_nothing(line: PGconn) -> str:
    """It is in the middle of an answer, which nobody reads."""
    line.send_query(LOCK + b"; SELECT repeat('x', 1000) FROM generate_series(1, 100000)")
    return "ClientWrite"


def says_nothing(line: PGconn) -> str:
    """It is in the middle of a question, of which nothing more comes."""
    line.enter_pipeline_mode()
    line.send_query_params(b"BEGIN", [])
    line.send_query_params(LOCK, [])
    line.send_flush_request()
    return "ClientRead"


@pytest.fixture
def by_a_socket(address: str) -> Iterator[tuple[str, PGconn]]:
    """The address of a record on this machine, whose kernel tells nobody who has stopped; and one

    who holds the lock there.
    """
    server = postgres_server.server()
    name = address.rpartition("/")[2]
    local = f"postgresql://test@/{name}?host={server.folder}&port={server.port}"
    with psycopg.connect(local) as connection:
        connection.pgconn.nonblocking = 1
        yield f"{local}&options=-c%20lock_timeout%3D500ms", connection.pgconn
        connection.pgconn.finish()


@pytest.fixture
async def impatient(
    by_a_socket: tuple[str, PGconn], open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> tuple[PostgresStore, PGconn]:
    """A store that soon takes a holder for stopped, and gives up; and who is to hold the lock."""
    monkeypatch.setattr(writers_lock, "HOLD_S", 0.1)
    monkeypatch.setattr(writer, "PATIENCE_S", 5.0)
    address, line = by_a_socket
    return await open_at(address), line


async def stopped(stop: Stop, line: PGconn) -> None:
    """It holds the lock from now on."""
    waits_for = stop(line)
    await wait_until_async(lambda: line.flush() == 0)
    waiting = WAITS_FOR.format(line.backend_pid, waits_for)
    await wait_until_async(lambda: postgres_server.server().run(waiting))


@pytest.mark.parametrize("stop", [hears_nothing, says_nothing])
async def test_x2_who_has_stopped_in_the_middle_of_an_answer_loses_the_lock(
    by_a_socket: tuple[str, PGconn],
    open_at: Open,
    monkeypatch: pytest.MonkeyPatch,
    stop: Stop,
) -> None:
    monkeypatch.setattr(writers_lock, "HOLD_S", 2.0)
    monkeypatch.setattr(writers_lock, "READS_S", 3.0)
    address, line = by_a_socket
    store = await open_at(address)
    await stopped(stop, line)
    await queued(store)


async def test_x10_it_does_not_keep_a_record_from_being_brought_up_to_date_either(
    by_a_socket: tuple[str, PGconn], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers_lock, "HOLD_S", 2.0)
    monkeypatch.setattr(writers_lock, "READS_S", 3.0)
    address, line = by_a_socket
    with connect(address) as connection:
        await stopped(hears_nothing, line)
        await asyncio.to_thread(begin_locked, connection)


async def test_x2_who_may_only_read_slowly_has_more_time(
    impatient: tuple[PostgresStore, PGconn],
) -> None:
    """The others do not wait for that."""
    store, line = impatient
    await stopped(hears_nothing, line)
    async with asyncio.timeout(writers_lock.READS_S / 2):
        with pytest.raises(StoreBusy):
            await queued(store)
    holds = "SELECT 1 FROM pg_stat_activity WHERE pid = {}"
    assert postgres_server.server().run(holds.format(line.backend_pid))


async def test_x2_who_goes_on_is_left_alone(
    impatient: tuple[PostgresStore, PGconn],
) -> None:
    """However long it takes: it is not its program that the database waits for."""
    store, line = impatient
    line.send_query(LOCK + b"; SELECT pg_sleep(100)")
    holder = WAITS_FOR.format(line.backend_pid, "PgSleep")
    await wait_until_async(lambda: postgres_server.server().run(holder))
    with pytest.raises(StoreBusy):
        await queued(store)
    assert postgres_server.server().run(holder)
    postgres_server.server().run(f"SELECT pg_terminate_backend({line.backend_pid})")
    await queued(store)
