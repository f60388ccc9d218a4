"""One gateway of a platform for a record, on whichever machine: two would both answer."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from backburner import Conflict
from backburner.model.home import Home
from backburner.runtime import sole as module
from backburner.runtime.sole import sole
from backburner.store.postgres import sole as store_module
from backburner.store.postgres.sole import Sole
from tests.waiting import wait_until_async

HELD = b"""SELECT pid, (classid::bigint << 32) | objid::bigint FROM pg_locks
           WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND database =
                 (SELECT oid FROM pg_database WHERE datname = current_database())"""
WAITING = b"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


async def test_the_second_one_is_refused_until_the_first_has_gone(
    tmp_path: Path, address: str
) -> None:
    one, other = (Home(tmp_path / name, address) for name in ("one", "other"))
    async with sole(one, "the gateway x"):
        async with sole(other, "the gateway y"):
            pass
        with pytest.raises(Conflict, match="on another machine"):
            async with sole(other, "the gateway x"):
                pass
    with psycopg.connect(address, autocommit=True) as looking:  # it has gone when it says so
        await wait_until_async(lambda: looking.execute(HELD).fetchall() == [])
    async with sole(other, "the gateway x"):
        pass


async def test_one_whose_connection_was_lost_ends_when_another_has_its_place(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.05)
    began = asyncio.Event()

    async def be_it() -> None:
        async with sole(Home(tmp_path, address), "the gateway x"):
            began.set()
            await asyncio.Event().wait()

    first = asyncio.create_task(be_it())
    await began.wait()
    with psycopg.connect(address, autocommit=True) as looking:
        ((pid, number),) = looking.execute(HELD).fetchall()
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as rival:
            # In the queue for the lock: whoever loses it, loses it to this one.
            taking = asyncio.create_task(rival.execute("SELECT pg_advisory_lock(%s)", [number]))
            await wait_until_async(lambda: looking.execute(WAITING).fetchall())
            looking.execute("SELECT pg_terminate_backend(%s)", [pid])
            await taking
            with pytest.raises(Conflict, match="on another machine"):
                await first


async def test_one_that_has_stopped_loses_its_place(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kernel says for ever that it is there."""
    monkeypatch.setattr(store_module, "_SILENT_S", 1)
    first, second = Sole(address, "the gateway x"), Sole(address, "the gateway x")
    assert await asyncio.to_thread(first.take)
    await wait_until_async(lambda: asyncio.to_thread(second.take))
    with pytest.raises(psycopg.OperationalError):
        await asyncio.to_thread(first.take)
    second.close()
    await wait_until_async(lambda: asyncio.to_thread(first.take))
    first.close()
