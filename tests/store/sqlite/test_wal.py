"""The write-ahead log: long from the start and kept, because that makes a commit cheaper; and what
is in it is never lost by that."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from backburner.store.sqlite import wal
from backburner.store.sqlite.reader import Reader
from backburner.store.sqlite.store import SqliteStore
from tests.conftest import REPOSITORY
from tests.store.conformance.making import ADA, PLENTY, new_task, queued
from tests.store.raw import Raw, check_file
from tests.store.sqlite.conftest import Open

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@pytest.fixture
def log(root: Path) -> Path:
    return root / "backburner.db-wal"


async def test_the_log_has_its_full_size_from_the_start_and_stays_within_it(
    store: SqliteStore, log: Path
) -> None:
    assert log.stat().st_size == wal.SIZE
    for _ in range(30):
        await queued(store)
    assert log.stat().st_size == wal.SIZE


async def test_x3_the_log_is_bounded(store: SqliteStore, log: Path) -> None:
    """SQLite goes round in it: 30 MB of changes leave no more than a few MB."""
    for number in range(30):
        spec = {"x": "y" * 1_000_000}
        await store.create(new_task(f"bg_{number}", spec=spec), limit=PLENTY)
    assert log.stat().st_size < 3 * wal.SIZE


async def test_the_log_outlives_the_last_connection(open_here: Open, root: Path, log: Path) -> None:
    store = open_here()
    task = await queued(store)
    await store.close()
    assert log.stat().st_size == wal.SIZE
    reader = Reader.if_current(str(root / "backburner.db"))
    assert reader is not None
    assert reader.get(task.id) == task
    reader.close()
    assert log.stat().st_size == wal.SIZE
    names = {path.name for path in root.iterdir()}
    assert names == {
        *("backburner.db", "backburner.db-wal", "backburner.db-shm", "write.lock", "wake")
    }


async def test_what_was_committed_is_in_the_file_itself_after_the_last_close(
    open_here: Open, root: Path, tmp_path: Path
) -> None:
    """A back-up of that one file is enough."""
    store = open_here()
    tasks = [await queued(store) for _ in range(20)]
    await store.close()
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "backburner.db").write_bytes((root / "backburner.db").read_bytes())
    again = open_here(copy)
    assert await again.newest(ADA, limit=100) == tasks[::-1]


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from backburner.store.sqlite import wal
from backburner.store.sqlite.store import open_store
from tests.store.conformance.making import queued

async def main():
    if sys.argv[2] == "short":
        wal.grow = lambda database: None
    store = open_store(Path(sys.argv[1]), "this boot")
    for number in range(25):
        await queued(store, f"bg_{number}")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.parametrize("length", ["short", "full"])
async def test_x2_what_a_killed_process_left_in_the_log_is_there(
    open_here: Open, root: Path, log: Path, length: str
) -> None:
    """Also when the log has to be brought to its size around it, and what follows are zeros."""
    for _ in range(2):
        killed = await asyncio.create_subprocess_exec(
            sys.executable, "-c", KILLED, str(root), length, cwd=REPOSITORY
        )
        assert await killed.wait() == -9
    assert (log.stat().st_size == wal.SIZE) is (length == "full")
    store = open_here()
    assert log.stat().st_size == wal.SIZE
    assert len(await store.newest(ADA, limit=100)) == 25
    await queued(store)
    await store.close()
    check_file(root / "backburner.db")
    assert len(await open_here().newest(ADA, limit=100)) == 26


async def test_x3_a_small_disk_is_not_filled_with_it(
    open_here: Open, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = os.fstatvfs

    def almost_full(fd: int) -> os.statvfs_result:
        values = list(true(fd))
        values[4] = 10 * wal.SIZE // values[1]  # f_bavail, in units of f_frsize
        return os.statvfs_result(values)

    monkeypatch.setattr(os, "fstatvfs", almost_full)
    store = open_here()
    task = await queued(store)
    assert log.stat().st_size < wal.SIZE
    assert await open_here().get(task.id) == task


async def test_another_program_may_use_the_file_meanwhile(
    store: SqliteStore, open_here: Open, root: Path, log: Path
) -> None:
    """And take the log away with it: the next to open it makes it anew."""
    task = await queued(store)
    await store.close()
    with Raw(root / "backburner.db") as raw:
        assert raw("SELECT count(*) FROM task") == [(1,)]
    assert not log.exists()
    again = open_here()
    assert await again.get(task.id) == task
    assert log.stat().st_size == wal.SIZE
