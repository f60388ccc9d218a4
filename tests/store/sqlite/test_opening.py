"""Opening the file safely: never with an SQLite that can corrupt it, never another program's file,
and every failure said in words that a person can act on."""

import contextlib
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path

import apsw
import pytest

from backburner.model.errors import StoreError, StoreUnusable
from backburner.store.sqlite import connection
from backburner.store.sqlite.connection import refuse_unsafe_sqlite
from backburner.store.sqlite.migrations import migrations
from backburner.store.sqlite.reader import Reader
from backburner.store.sqlite.store import SqliteStore
from tests.store.conformance.making import ADA, ended, queued
from tests.store.raw import Raw
from tests.store.sqlite.conftest import Open
from tests.store.sqlite.mounts import run_in_own_mounts

# The version of SQLite


@pytest.mark.parametrize("version", ["3.7.0", "3.7.17", "3.40.1", "3.51.0", "3.51.2"])
def test_an_sqlite_with_the_wal_race_is_refused(version: str) -> None:
    with pytest.raises(StoreUnusable, match=version) as refusal:
        refuse_unsafe_sqlite(version)
    assert "apsw" in refusal.value.remedy


@pytest.mark.parametrize(
    "version", ["3.6.23", "3.51.3", "3.52.0", "4.0.0", apsw.sqlite_lib_version()]
)
def test_an_sqlite_without_it_is_not_refused(version: str) -> None:
    refuse_unsafe_sqlite(version)


async def test_a_store_does_not_open_with_an_unsafe_sqlite(
    open_here: Open, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.46.1")
    with pytest.raises(StoreUnusable, match=r"3\.46\.1"):
        open_here()
    with pytest.raises(StoreUnusable, match=r"3\.46\.1"):
        Reader(str(root / "backburner.db"))


def test_the_driver_of_the_standard_library_is_not_loaded() -> None:
    program = "import sys, backburner.store.sqlite.store; print('sqlite3' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"


# What is in the file


async def test_a_fresh_record_is_marked_as_ours_and_durable(store: object, database: Path) -> None:
    with Raw(database) as raw:
        assert raw("PRAGMA application_id") == [(0x42424E52,)]
        assert raw("PRAGMA journal_mode") == [("wal",)]
    with contextlib.closing(connection.connect(str(database))) as ours:
        assert connection.pragma(ours, "synchronous") == 2, "FULL: on disk when a call returns"
        assert connection.pragma(ours, "foreign_keys") == 1


FOREIGN = {
    "another application": "PRAGMA application_id = 1234; CREATE TABLE stamps (id)",
    "another application of our version": "PRAGMA journal_mode = WAL; "
    f"PRAGMA application_id = 1234; PRAGMA user_version = {max(migrations())}",
    "a nameless one": "CREATE TABLE stamps (id)",
    "a nameless one with a version": "CREATE TABLE stamps (id); PRAGMA user_version = 1",
}


@pytest.mark.parametrize("name", FOREIGN)
async def test_the_database_of_another_program_is_refused_and_left_alone(
    open_here: Open, root: Path, database: Path, name: str
) -> None:
    root.mkdir()
    with Raw(database) as raw:
        raw(FOREIGN[name])
    before = database.read_bytes()
    with pytest.raises(StoreUnusable, match="another program") as refusal:
        open_here()
    assert "--home" in refusal.value.remedy
    assert database.read_bytes() == before
    assert Reader.if_current(str(database)) is None


async def test_the_record_of_a_newer_backburner_is_refused_and_left_alone(
    open_here: Open, database: Path
) -> None:
    store = open_here()
    await queued(store)
    await store.close()
    with Raw(database) as raw:
        raw("PRAGMA user_version = 9999")
    before = database.read_bytes()
    with pytest.raises(StoreUnusable, match=r"newer Backburner \(format 9999") as refusal:
        open_here()
    assert "upgrade" in refusal.value.remedy
    assert database.read_bytes() == before
    assert Reader.if_current(str(database)) is None


async def test_a_copy_that_lost_its_wal_mode_gets_it_back(open_here: Open, database: Path) -> None:
    """As from a back-up made with VACUUM INTO."""
    store = open_here()
    task = await queued(store)
    await store.close()
    with Raw(database) as raw:
        raw("PRAGMA journal_mode = DELETE")
    again = open_here()
    assert await again.get(task.id) == task
    with Raw(database) as raw:
        assert raw("PRAGMA journal_mode") == [("wal",)]


# Damage


async def test_a_file_that_is_no_database_is_refused(
    open_here: Open, root: Path, database: Path
) -> None:
    root.mkdir()
    database.write_text("this is no database\n" * 500)
    with pytest.raises(StoreUnusable, match="damaged") as refusal:
        open_here()
    assert "back-up" in refusal.value.remedy
    with pytest.raises(StoreUnusable, match="damaged"):
        Reader.if_current(str(database))


async def test_a_damaged_file_is_said_to_be_damaged(open_here: Open, database: Path) -> None:
    store = open_here()
    for _ in range(60):
        await ended(store)
    await store.close()

    async def list_all(damaged: SqliteStore) -> object:
        return await damaged.newest(ADA, limit=100)

    async def open_and(use: Callable[[SqliteStore], Awaitable[object]]) -> None:
        await use(open_here())

    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(8192)
        file.write(os.urandom(size - 8192))
    for use in (list_all, ended):
        with pytest.raises(StoreUnusable, match="damaged"):
            await open_and(use)


async def test_an_empty_file_is_a_fresh_record(open_here: Open, root: Path, database: Path) -> None:
    root.mkdir()
    database.touch()
    await queued(open_here())


async def test_rubbish_in_the_write_ahead_log_loses_nothing_that_was_committed(
    open_here: Open, database: Path
) -> None:
    """As after a power cut in the middle of a write."""
    store = open_here()
    task = await ended(store)
    await store.close()
    database.with_name("backburner.db-wal").write_bytes(os.urandom(20_000))
    again = open_here()
    assert await again.get(task.id) == task
    await queued(again)


# Folders


async def test_a_home_is_made_for_its_owner_alone(open_here: Open, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        store = open_here(tmp_path / "a" / "b" / "home")
    finally:
        os.umask(old)
    await queued(store)
    home = tmp_path / "a" / "b" / "home"
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "wake").stat().st_mode) == 0o700
    files = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir() if path.is_file()
    }
    names = ("backburner.db", "backburner.db-wal", "backburner.db-shm", "write.lock")
    assert files == dict.fromkeys(names, 0o600)


@pytest.mark.parametrize("name", ["the home", "its parent", "the record"])
async def test_something_else_in_the_place_is_a_clear_error(
    open_here: Open, tmp_path: Path, name: str
) -> None:
    home = tmp_path / "home"
    if name == "the home":
        home.touch()
    elif name == "its parent":
        home.touch()
        home /= "deeper"
    else:
        (home / "backburner.db").mkdir(parents=True)
    with pytest.raises(StoreUnusable, match=r"cannot be (used|opened)") as refusal:
        open_here(home)
    assert refusal.value.remedy


@contextlib.contextmanager
def as_an_ordinary_user() -> Generator[None]:
    """Root may read everything, so for the time being it is nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("mode", [0o000, 0o500])
async def test_a_home_without_permission_is_a_clear_error(open_here: Open, mode: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        home = Path(folder) / "home"
        home.mkdir()
        home.chmod(mode)
        with as_an_ordinary_user():
            assert not os.access(home, os.W_OK, effective_ids=True)
            with pytest.raises(StoreUnusable, match="Permission denied") as refusal:
                open_here(home)
        assert "--home" in refusal.value.remedy
        assert list(home.iterdir()) == []


def test_a_home_on_a_read_only_file_system_is_a_clear_error() -> None:
    run_in_own_mounts("tests.store.sqlite.on_a_read_only_disk")


# Many at once, again and again


OPENER = """
import asyncio, sys
from pathlib import Path
from backburner.store.sqlite.store import open_store

async def main():
    for line in sys.stdin:
        try:
            await open_store(Path(line.strip()), "this boot").close()
        except Exception as error:
            print(type(error).__name__, error, flush=True)
        else:
            print("opened", flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
def test_many_processes_may_be_the_first_to_open_a_home(tmp_path: Path) -> None:
    """The switch to WAL and the migration want to be alone, and SQLite does not wait for that."""
    with contextlib.ExitStack() as stack:
        openers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", OPENER],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(12)
        ]
        outcomes: list[str] = []
        for number in range(40):
            for opener in openers:
                assert opener.stdin is not None
                opener.stdin.write(f"{tmp_path}/h{number}\n")
                opener.stdin.flush()
            for opener in openers:
                assert opener.stdout is not None
                outcomes.append(opener.stdout.readline())
    assert set(outcomes) == {"opened\n"}
    assert len(outcomes) == 12 * 40


async def test_an_attempt_to_open_that_failed_leaves_nothing_open(
    open_here: Open, root: Path, database: Path
) -> None:
    """A keeper tries again and again while the disk is full."""
    root.mkdir()
    with Raw(database) as raw:
        raw("PRAGMA application_id = 1234; CREATE TABLE stamps (id)")

    def descriptors() -> list[str]:
        paths = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
        links = [os.readlink(path) for path in paths if os.path.islink(path)]
        return sorted(link for link in links if link.startswith(str(root)))

    for _ in range(5):
        with pytest.raises(StoreUnusable):
            open_here()
    assert descriptors() == []


async def test_a_closed_store_says_so(store: object, open_here: Open) -> None:
    closed = open_here()
    task = await queued(closed)
    await closed.close()
    await closed.close()  # twice is harmless
    with pytest.raises(StoreError):
        await closed.get(task.id)
    with pytest.raises(StoreError, match="closed"):
        await queued(closed)


def test_the_errors_of_sqlite_have_words_of_ours() -> None:
    """Each with a remedy; what is not known is passed on."""
    said = {
        kind.__name__: type(connection.explain(kind("x"), "/h/backburner.db")).__name__
        for kind in (
            apsw.FullError,
            apsw.BusyError,
            apsw.LockedError,
            apsw.ReadOnlyError,
            apsw.CantOpenError,
            apsw.CorruptError,
            apsw.NotADBError,
            apsw.IOError,
            apsw.SQLError,
        )
    }
    assert said == {
        "FullError": "StoreFull",
        "BusyError": "StoreBusy",
        "LockedError": "StoreBusy",
        "ReadOnlyError": "StoreUnusable",
        "CantOpenError": "StoreUnusable",
        "CorruptError": "StoreUnusable",
        "NotADBError": "StoreUnusable",
        "IOError": "StoreError",
        "SQLError": "StoreError",
    }
