"""Numbered migrations: from every earlier version, with rows in place, whole or not at all."""

import re
from pathlib import Path

import apsw
import pytest

from backburner.model.errors import StoreError
from backburner.model.signals import SignalState
from backburner.model.states import ErrorKind, State
from backburner.store.sqlite import migrations as module
from backburner.store.sqlite.connection import connect, is_empty, pragma
from backburner.store.sqlite.migrations import is_current, migrate, migrations
from backburner.store.sqlite.queries import sql_file
from backburner.store.sqlite.reader import Reader
from backburner.store.sqlite.statements import Statements
from tests.store.conformance.making import ADA, ENDINGS, PLACE, get, queued
from tests.store.raw import Raw
from tests.store.sqlite.conftest import Open

NEWEST = max(migrations())

ROWS = {
    1: """
    INSERT INTO task (seq, id, owner, session, kind, title, spec, state, attempt, created_at,
                      started_at, finished_at, error_kind, error_message, exit_code, boot_id,
                      started_boot, pid, output_bytes, events)
    VALUES (7, 'bg_old', 'ada', 'chat', 'shell', 'old tests', '{"command":"pytest"}', 'failed', 2,
            1000, 2000, 3000, 'exit', 'exit code 3', 3, 'boot', 5, 4711, 99, 3);
    INSERT INTO task (seq, id, owner, session, kind, title, spec, state, created_at, events)
    VALUES (8, 'bg_waits', 'ada', 'chat', 'shell', 'waits', '{}', 'queued', 4000, 1);
    INSERT INTO event (task, number, at, kind, data) VALUES (7, 1, 1000, 'created', '{}'),
        (7, 2, 2000, 'started', '{"attempt":2}'), (7, 3, 3000, 'finished', '{"exit_code":3}'),
        (8, 1, 4000, 'created', '{}');
    INSERT INTO signal (key, task, owner, session, kind, text, data, state, channel, created_at)
    VALUES ('bg_old:end', 7, 'ada', 'chat', 'failed', 'old tests failed', '{}', 'pending',
            'inbox', 3000);
    """,
}
"""By version: rows as a store of that version wrote them. A version that is missing here has the
same shape as the one before it, as far as these rows are concerned."""


def test_migrations_are_numbered_without_gaps() -> None:
    assert list(migrations()) == list(range(1, NEWEST + 1))
    for number, name in migrations().items():
        assert name.startswith(f"{number:04d}_")
        sql = sql_file(name).upper()
        # A trigger has a BEGIN too, and no semicolon after it.
        assert not re.search(r"^\s*(BEGIN|COMMIT|ROLLBACK)( \w+)?;", sql, re.MULTILINE)


@pytest.mark.parametrize("version", migrations())
async def test_a_record_of_every_version_is_brought_up_and_keeps_its_rows(
    root: Path, database: Path, open_here: Open, version: int
) -> None:
    root.mkdir()
    connection = connect(str(database))
    migrate(connection, up_to=version)
    assert pragma(connection, "user_version") == version
    assert is_current(connection) is (version == NEWEST)
    connection.close()
    with Raw(database) as raw:
        raw(ROWS[max(known for known in ROWS if known <= version)])

    store = open_here()
    old = await get(store, "bg_old")
    assert (old.seq, old.title, old.spec, old.state) == (
        7, "old tests", {"command": "pytest"}, State.FAILED,
    )  # fmt: skip
    assert (old.attempt, old.created_at, old.started_at, old.finished_at) == (2, 1000, 2000, 3000)
    assert old.error is not None
    assert (old.error.kind, old.exit_code, old.pid) == (ErrorKind.EXIT, 3, 4711)
    assert old.signal_state is SignalState.PENDING
    assert [event.number for event in await store.events("bg_old")] == [1, 2, 3]
    assert [signal.key for signal in await store.signals(ADA)] == ["bg_old:end"]
    # And what is old can be worked with.
    assert await store.claim("bg_waits", 1, PLACE) is not None
    assert len(await store.claim_signals(ADA, consumer="c", limit=9, lease_s=60)) == 1
    assert (await queued(store)).seq > 8
    with Raw(database) as raw:
        assert raw("PRAGMA user_version") == [(NEWEST,)]
        assert raw("PRAGMA integrity_check") == [("ok",)]
        assert raw("PRAGMA foreign_key_check") == []


async def test_numbers_of_signals_never_come_twice_though_all_are_forgotten(
    root: Path, database: Path, open_here: Open
) -> None:
    """The table is made anew in between; a consumer remembers how far it was by the number."""
    root.mkdir()
    connection = connect(str(database))
    migrate(connection, up_to=4)
    connection.close()
    with Raw(database) as raw:
        raw(ROWS[1])
        raw(
            "INSERT OR REPLACE INTO sqlite_sequence (rowid, name, seq) "
            "SELECT rowid, name, 41 FROM sqlite_sequence WHERE name = 'signal'"
        )
        raw("DELETE FROM signal")
    store = open_here()
    await queued(store, "bg_new")
    assert await store.claim("bg_new", 1, PLACE) is not None
    assert await store.finish("bg_new", 1, ENDINGS["succeeded"]) is not None
    (signal,) = await store.signals(ADA)
    assert signal.seq == 42


def shape(database: Path) -> list[tuple[object, ...]]:
    with Raw(database) as raw:
        return raw("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name")


def test_one_by_one_or_all_at_once_gives_the_same_shape(tmp_path: Path) -> None:
    steps, at_once = tmp_path / "steps.db", tmp_path / "at_once.db"
    connection = connect(str(steps))
    for version in migrations():
        migrate(connection, up_to=version)
    connection.close()
    connection = connect(str(at_once))
    migrate(connection)
    migrate(connection)  # nothing is missing: nothing happens
    connection.close()
    assert shape(steps) == shape(at_once)


@pytest.mark.parametrize("version", migrations())
async def test_a_migration_that_fails_leaves_the_version_before_it(
    root: Path,
    database: Path,
    open_here: Open,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
) -> None:
    """Its number, our name and the tables come and go together: a kill in between is the same."""
    root.mkdir()
    name = migrations()[version]

    def broken(wanted: str) -> str:
        return sql_file(wanted) + ("; CREATE TABLE task (id)" if wanted == name else "")

    connection = connect(str(database))
    if version > 1:
        migrate(connection, up_to=version - 1)
    with monkeypatch.context() as patch:
        patch.setattr(module, "sql_file", broken)
        with pytest.raises(StoreError, match="already exists"):
            migrate(connection)
    assert pragma(connection, "user_version") == version - 1
    if version == 1:
        assert is_empty(connection)
    connection.close()
    await queued(open_here())


async def test_a_file_without_our_name_on_it_has_no_tables_of_ours(
    root: Path, database: Path, open_here: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in between, and the home would be taken for another program's ever after."""

    def die(_: object) -> None:
        raise KeyboardInterrupt

    root.mkdir()
    connection = connect(str(database))
    with monkeypatch.context() as patch:
        patch.setattr(module, "mark_as_ours", die)
        with pytest.raises(KeyboardInterrupt):
            migrate(connection)
    assert is_empty(connection)
    connection.close()
    await queued(open_here())


async def test_a_reader_wants_a_record_that_is_there_and_current(
    root: Path, database: Path, open_here: Open
) -> None:
    assert Reader.if_current(str(database)) is None
    root.mkdir()
    apsw.Connection(str(database)).close()
    database.touch()
    assert Reader.if_current(str(database)) is None, "an empty file has yet to be migrated"
    store = open_here()
    task = await queued(store)
    reader = Reader.if_current(str(database))
    assert reader is not None
    assert reader.get(task.id) == task
    assert reader.any_active() is True
    reader.close()


async def test_a_reader_cannot_write(store: object, database: Path) -> None:
    connection = connect(str(database), readonly=True)
    with pytest.raises(apsw.ReadOnlyError):
        Statements(connection).command("DELETE FROM task")
    connection.close()
