"""X10: a record that is in use is brought up to date, by one of many, all or nothing."""

import asyncio

import psycopg
import pytest

from backburner.model.errors import StoreError
from backburner.store.postgres import migrations as module
from backburner.store.postgres import queries
from backburner.store.postgres.checkup import bring_up_to_date
from backburner.store.postgres.connection import connect
from backburner.store.postgres.migrations import format_of, migrate, migrations
from backburner.store.postgres.queries import sql_file
from backburner.store.postgres.writers_lock import WRITERS
from tests.store.conformance.making import ADA, ENDINGS, PLACE, PLENTY, get, new_task, running
from tests.store.postgres.conftest import Open
from tests.store.postgres.test_database import run

pytestmark = [pytest.mark.slow]

NEXT = max(migrations()) + 1
ADDS = """
    ALTER TABLE task ADD COLUMN mood TEXT;
    UPDATE task SET mood = 'calm' WHERE state = 'running';
"""


def becomes(patch: pytest.MonkeyPatch, text: str) -> None:
    """The program is the next release, with one more migration."""
    numbered = {**migrations(), NEXT: f"{NEXT:04d}_mood.sql"}

    def sql_file(name: str) -> str:
        return text if name == numbered[NEXT] else queries.sql_file(name)

    patch.setattr(module, "migrations", lambda: numbered)
    patch.setattr(module, "sql_file", sql_file)


def test_the_numbers_of_the_migrations_have_no_gap() -> None:
    assert list(migrations()) == list(range(1, len(migrations()) + 1))
    assert max(migrations()) >= module.OLDEST


async def test_x10_what_runs_and_waits_is_there_after_the_next_migration(
    address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = await open_at(address)
    runs = await running(old)
    waits = await old.create(new_task(), limit=PLENTY)
    becomes(monkeypatch, ADDS)
    done = await asyncio.to_thread(bring_up_to_date, address)
    assert (done.before, done.after, done.oldest) == (NEXT - 1, NEXT, module.OLDEST)
    assert done.applied == [f"{NEXT:04d}_mood.sql"]
    assert run(address, "SELECT mood FROM task ORDER BY seq") == [("calm",), (None,)]
    # Who had it open goes on, and so does who opens it now.
    assert await old.finish(runs.id, 1, ENDINGS["succeeded"]) is not None
    new = await open_at(address)
    assert await new.claim(waits.id, 1, PLACE) is not None
    assert (await get(old, waits.id)).state.value == "running"
    assert len(await new.newest(ADA, limit=9)) == 2


async def test_x10_one_of_many_that_come_at_once_does_it(
    address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    await open_at(address)
    becomes(monkeypatch, ADDS)
    done = await asyncio.gather(*(asyncio.to_thread(bring_up_to_date, address) for _ in range(6)))
    assert sorted(len(each.applied) for each in done) == [0, 0, 0, 0, 0, 1]


async def test_x10_a_migration_that_fails_leaves_the_record_as_it_was(
    address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_at(address)
    task = await running(store)
    becomes(monkeypatch, ADDS + "SELECT 1 / 0;")
    with connect(address) as connection:
        with pytest.raises(StoreError, match="division by zero"):
            migrate(connection)
        assert format_of(connection).number == NEXT - 1
    with pytest.raises(psycopg.errors.UndefinedColumn):
        run(address, "SELECT mood FROM task")
    assert await store.finish(task.id, 1, ENDINGS["succeeded"]) is not None


def test_x1_functions_of_the_database_take_the_lock_of_the_writers() -> None:
    assert f"pg_advisory_xact_lock({WRITERS})" in sql_file("0005_at_once.sql")
