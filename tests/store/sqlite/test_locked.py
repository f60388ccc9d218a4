"""Somebody who keeps the database or its lock: StoreBusy after a while, and no harm."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest

from backburner.model import clock
from backburner.model.clock import SECOND
from backburner.model.errors import StoreBusy
from backburner.store.sqlite import connection, writer
from tests.store.conformance.making import ADA, ENDINGS, get, queued
from tests.store.sqlite.conftest import Open

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

HOLDER = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(10000)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
print("released", flush=True)
"""


class Holder:
    """Another program that has the database open."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def release(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.stdout.readline() == b"released\n"


@contextlib.contextmanager
def locked(database: Path) -> Generator[Holder]:
    command = [sys.executable, "-c", HOLDER, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"locked\n"
            yield Holder(process)
        finally:
            process.kill()


@pytest.fixture
def busy_after(monkeypatch: pytest.MonkeyPatch) -> float:
    """Seconds until we give up; ten without this, which is long for a test."""
    monkeypatch.setattr(connection, "BUSY_MS", 300)
    return 0.3


async def test_a_locked_database_is_busy_after_a_while_and_works_again_afterwards(
    busy_after: float, open_here: Open, database: Path
) -> None:
    store = open_here()
    task = await queued(store)
    with locked(database) as holder:
        began = clock.boot_now()
        with pytest.raises(StoreBusy, match="another program") as refusal:
            await queued(store, "bg_refused")
        assert clock.boot_now() - began >= 0.9 * busy_after * SECOND
        assert "close the program" in refusal.value.remedy
        assert await get(store, task.id) == task, "readers go on"
        assert len(await store.newest(ADA, limit=10)) == 1
        holder.release()
        await queued(store, "bg_works")
    assert await store.get("bg_refused") is None


async def test_x1_to_look_for_signals_where_there_are_none_takes_no_lock(
    busy_after: float, open_here: Open, database: Path
) -> None:
    store = open_here()
    claim = partial(store.claim_signals, ADA, consumer="c", limit=10, lease_s=60)
    await queued(store)
    with locked(database) as holder:
        assert await claim() == []
        assert await store.claim_deliveries(consumer="d", limit=10, lease_s=60) == []
        holder.release()
    ending = await store.finish((await queued(store)).id, 1, ENDINGS["spawn"])
    assert ending is not None
    with locked(database) as holder:
        with pytest.raises(StoreBusy):
            await claim()
        holder.release()
    assert [signal.task for signal in await claim()] == [ending.id]


async def test_all_who_wait_hear_together_that_it_is_busy(
    busy_after: float, open_here: Open, database: Path
) -> None:
    """Not one after the other: the fortieth would hear of it after forty times as long."""
    store = open_here()
    with locked(database) as holder:
        began = clock.boot_now()
        outcomes = await asyncio.gather(*(queued(store) for _ in range(40)), return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {StoreBusy}
        assert clock.boot_now() - began < 20 * busy_after * SECOND
        holder.release()
    assert await store.newest(ADA, limit=10) == []
    await queued(store)


async def test_a_lock_that_is_let_go_in_time_only_costs_time(
    open_here: Open, database: Path
) -> None:
    store = open_here()
    with locked(database) as holder:
        work = asyncio.create_task(queued(store))
        await asyncio.wait([work], timeout=0.1)
        assert not work.done()
        holder.release()
        assert (await work).session == "chat"


async def test_a_locked_database_can_be_opened_and_read(
    busy_after: float, open_here: Open, database: Path
) -> None:
    first = open_here()
    task = await queued(first)
    with locked(database):
        assert await open_here().get(task.id) == task


async def test_the_killer_of_a_holder_unlocks_the_database(
    busy_after: float, open_here: Open, database: Path
) -> None:
    store = open_here()
    with locked(database), pytest.raises(StoreBusy):
        await queued(store)
    await queued(store)


# A process of ours that holds the write lock, and was stopped

STOPPED = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(fd, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def write_locked(root: Path) -> Generator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-c", STOPPED, str(root / "write.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"locked\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty seconds without this."""
    monkeypatch.setattr(writer, "LONGEST_WAIT_S", 0.3)


async def test_who_holds_the_write_lock_for_ever_is_named(
    short_wait: None, open_here: Open, root: Path
) -> None:
    store = open_here()
    with write_locked(root) as process:
        outcomes = await asyncio.gather(
            *(queued(store, f"bg_refused{n}") for n in range(5)), return_exceptions=True
        )
        assert {type(outcome) for outcome in outcomes} == {StoreBusy}
        assert f"process {process.pid} has been writing" in str(outcomes[0])
        assert f"kill -CONT {process.pid}" in str(outcomes[0])
        assert await store.newest(ADA, limit=10) == [], "readers go on"
    # What was given up is not written when the lock is free at last.
    await queued(store, "bg_works")
    assert [task.id for task in await store.newest(ADA, limit=10)] == ["bg_works"]


async def test_a_store_can_be_closed_while_another_process_holds_the_lock(
    short_wait: None, open_here: Open, root: Path
) -> None:
    store = open_here()
    with write_locked(root):
        work = asyncio.create_task(queued(store))
        await asyncio.wait([work], timeout=0.05)
        await store.close()
        with pytest.raises(StoreBusy):
            await work


async def test_a_record_that_has_to_be_made_is_not_waited_for_for_ever(
    short_wait: None, open_here: Open, root: Path
) -> None:
    root.mkdir()
    with write_locked(root) as process, pytest.raises(StoreBusy, match=f"process {process.pid}"):
        open_here()
    await queued(open_here())
