"""The one writer of a process: commits together what waits together, and each caller gets its own
answer, whatever the others in the batch do."""

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest

from backburner.model.errors import StoreError
from backburner.store.sqlite.connection import connect
from backburner.store.sqlite.statements import Statements
from backburner.store.sqlite.store import SqliteStore
from backburner.store.sqlite.writer import WriteLock, Writer
from tests.store.conformance.making import ADA, PLENTY, get, new_task, queued
from tests.store.raw import Raw
from tests.store.sqlite.conftest import Open
from tests.waiting import wait_until, wait_until_async


class Bench:
    """A writer on a file of its own, whose commits are counted."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bench.db"
        with Raw(self.path) as raw:
            raw("PRAGMA journal_mode = WAL")
            raw("CREATE TABLE kept (n INTEGER PRIMARY KEY CHECK (n < 1000000))")
        self._commits = 0
        self._lock = WriteLock(str(folder / "lock"))
        self._gate = WriteLock(str(folder / "lock"))
        self.writer = Writer(
            connect(str(self.path)), self._lock, changed=lambda: None, wake_others=self._count
        )

    def _count(self) -> None:
        self._commits += 1

    async def commits(self) -> int:
        """Those before this call: read in the writer's thread, which counts after it answers."""
        return await self.writer.write(lambda _: self._commits)

    @contextlib.contextmanager
    def closed_gate(self) -> Generator[None]:
        """As while another process writes: what is asked for meanwhile has to wait."""
        with self._gate:
            yield

    async def keep(self, number: int) -> int:
        def operation(run: Statements) -> int:
            run.command(f"INSERT INTO kept VALUES ({number})")
            return number

        return await self.writer.write(operation)

    def kept(self) -> list[int]:
        with Raw(self.path) as raw:
            return [row[0] for row in raw("SELECT n FROM kept ORDER BY n")]

    def close(self) -> None:
        self.writer.close()
        self._lock.close()
        self._gate.close()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    await asyncio.to_thread(bench.close)


async def started(*work: asyncio.Task[Any]) -> None:
    """Let these calls get as far as they can: into the queue of the writer."""
    for _ in work:
        await asyncio.wait(work, timeout=0)


# Group commit


async def test_what_waits_together_is_committed_together(bench: Bench) -> None:
    with bench.closed_gate():
        work = [asyncio.create_task(bench.keep(number)) for number in range(64)]
        await started(*work)
    assert await asyncio.gather(*work) == list(range(64))
    assert await bench.commits() <= 2
    assert bench.kept() == list(range(64))


async def test_sixty_four_callers_at_once_need_far_fewer_commits(bench: Bench) -> None:
    """Without anything to wait for: the disk itself makes them meet."""

    async def caller(number: int) -> None:
        for turn in range(5):
            await bench.keep(number * 5 + turn)

    await asyncio.gather(*(caller(number) for number in range(64)))
    assert await bench.commits() < 320 / 4
    assert len(bench.kept()) == 320


async def test_a_batch_has_a_limit_so_that_other_processes_get_their_turn(bench: Bench) -> None:
    with bench.closed_gate():
        work = [asyncio.create_task(bench.keep(number)) for number in range(1200)]
        await started(work[0])
    await asyncio.gather(*work)
    assert 3 <= await bench.commits() <= 6
    assert len(bench.kept()) == 1200


async def test_an_answer_comes_after_the_commit(bench: Bench) -> None:
    for number in range(20):
        await bench.keep(number)
        assert number in bench.kept()
    assert await bench.commits() == 20


# Savepoints


async def test_an_operation_that_fails_takes_nothing_else_with_it(bench: Bench) -> None:
    def half_done(run: Statements) -> int:
        run.command("INSERT INTO kept VALUES (500)")
        raise LookupError("changed my mind")

    with bench.closed_gate():
        work = [
            asyncio.create_task(bench.keep(1)),
            asyncio.create_task(bench.writer.write(half_done)),
            asyncio.create_task(bench.keep(2)),
            asyncio.create_task(bench.keep(1)),  # taken already: a constraint of the database
            asyncio.create_task(bench.keep(2_000_000)),  # another one
            asyncio.create_task(bench.keep(3)),
        ]
        await started(*work)
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    assert [type(outcome).__name__ for outcome in outcomes] == [
        *("int", "LookupError", "int", "StoreError", "StoreError", "int")
    ]
    assert bench.kept() == [1, 2, 3]
    assert await bench.commits() <= 2, "it was one batch: otherwise this test proves nothing"


async def test_the_failure_of_one_call_is_its_own_in_the_store_too(open_here: Open) -> None:
    store = open_here()
    outcomes = await asyncio.gather(
        *(queued(store, f"bg_{number % 10}", scope=ADA) for number in range(30)),
        store.create(new_task(spec={"x": object()}), limit=PLENTY),
        return_exceptions=True,
    )
    assert [outcome for outcome in outcomes[:-1] if isinstance(outcome, BaseException)] == []
    assert isinstance(outcomes[-1], TypeError)
    assert len(await store.newest(ADA, limit=100)) == 10


# Callers that go away


async def test_a_cancelled_caller_hinders_nobody_and_what_was_written_stays(
    bench: Bench,
) -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    with bench.closed_gate():
        gone = asyncio.create_task(bench.keep(1))
        stays = asyncio.create_task(bench.keep(2))
        await started(gone, stays)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
    assert await stays == 2
    assert await bench.keep(3) == 3
    assert bench.kept() == [1, 2, 3]
    assert complaints == []


def test_a_loop_that_was_closed_takes_nothing_back(tmp_path: Path) -> None:
    """As when a sync application gives up in the middle."""
    loop = asyncio.new_event_loop()

    async def begin() -> tuple[Bench, asyncio.Task[int]]:
        bench = Bench(tmp_path)
        return bench, asyncio.create_task(bench.keep(1))

    bench, work = loop.run_until_complete(begin())
    with bench.closed_gate():
        loop.run_until_complete(asyncio.wait([work], timeout=0))
        work.cancel()
        loop.run_until_complete(asyncio.wait([work]))
        loop.close()
    bench.close()
    assert bench.kept() == [1]


# Closing


async def test_what_waits_is_written_before_the_end(open_here: Open, root: Path) -> None:
    store = open_here()
    gate = WriteLock(str(root / "write.lock"))
    with gate:
        work = [asyncio.create_task(queued(store, f"bg_{number}")) for number in range(10)]
        await started(*work)
        closing = asyncio.create_task(store.close())
        await asyncio.wait([closing], timeout=0.05)
        assert not closing.done()
        with pytest.raises(StoreError, match="closed"):
            await queued(store, "bg_late")
    await closing
    assert [task.id for task in await asyncio.gather(*work)] == [f"bg_{n}" for n in range(10)]
    gate.close()
    again = open_here()
    assert len(await again.newest(ADA, limit=100)) == 10
    assert await again.get("bg_late") is None


async def test_the_thread_ends_with_the_store(open_here: Open) -> None:
    def writers() -> int:
        return sum(thread.name == "backburner-writer" for thread in threading.enumerate())

    before = writers()
    stores = [open_here() for _ in range(3)]
    assert writers() == before + 3
    for store in stores:
        await store.close()
    assert writers() == before


# The lock


async def test_writers_wait_for_the_lock_of_another_process_and_readers_do_not(
    store: SqliteStore, root: Path
) -> None:
    task = await queued(store)
    gate = WriteLock(str(root / "write.lock"))
    with gate:
        work = asyncio.create_task(queued(store, "bg_waits"))
        await asyncio.wait([work], timeout=0.05)
        assert not work.done()
        assert await get(store, task.id) == task
        assert await store.get("bg_waits") is None
    assert (await work).id == "bg_waits"
    gate.close()


def test_the_lock_ends_with_its_process(root: Path) -> None:
    """Whoever is killed while it writes blocks nobody."""
    root.mkdir()
    program = (
        "import sys; from backburner.store.sqlite.writer import WriteLock\n"
        "with WriteLock(sys.argv[1]):\n    print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(root / "write.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    lock = WriteLock(str(root / "write.lock"))
    taken = threading.Event()

    def take() -> None:
        with lock:
            taken.set()

    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        thread = threading.Thread(target=take)
        thread.start()
        assert not taken.wait(0.05)
        holder.kill()
    wait_until(taken.is_set)
    thread.join()
    lock.close()


async def test_the_store_answers_while_the_writer_is_busy(store: SqliteStore) -> None:
    """Forty changes under way: a read in between does not wait for them."""
    work = [asyncio.create_task(queued(store)) for _ in range(40)]
    assert await store.newest(ADA, limit=1) == []
    await wait_until_async(lambda: all(each.done() for each in work))
