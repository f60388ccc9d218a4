"""The raw limit of a record: apsw with the durability of ours, and nothing else.

One plain table with a unique id: no events, no signals, no guards, no savepoints. WAL and
synchronous FULL as in `backburner.store`, so that a commit costs the same fsync; and a log of full
size from the start, because a commit that makes it longer costs three times as much.
"""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import apsw

from backburner.store.sqlite import wal

INSERT = """INSERT INTO task (id, owner, session, kind, title, spec, state, created_at)
            VALUES (?, ?, ?, ?, ?, ?, 'queued', ?)"""
CLAIM = "UPDATE task SET state = 'running', started_at = ? WHERE id = ?"
FINISH = "UPDATE task SET state = 'succeeded', finished_at = ? WHERE id = ?"

_TABLE = """CREATE TABLE IF NOT EXISTS task (
    id TEXT PRIMARY KEY, owner TEXT, session TEXT, kind TEXT, title TEXT, spec TEXT, state TEXT,
    created_at INTEGER, started_at INTEGER, finished_at INTEGER)"""

_BATCH = 512

Values = Sequence[str | int] | Mapping[str, str | int]


class Database:
    """One connection; a statement outside a transaction is a commit of its own."""

    def __init__(self, path: str, *pragmas: str) -> None:
        self._connection = apsw.Connection(path)
        self._connection.set_busy_timeout(10_000)
        # apsw's own types name one that Python 3.11 does not have.
        self.execute: Any = self._connection.cursor().execute  # pyright: ignore[reportUnknownMemberType]
        for pragma in pragmas:
            self.execute(f"PRAGMA {pragma}")

    def close(self) -> None:
        """Close it."""
        self._connection.close()


def durable(path: Path, *pragmas: str) -> Database:
    """With the durability of our own record, and past the same warm-up."""
    database = Database(
        str(path), "journal_mode = WAL", "synchronous = FULL", "cache_size = -4096", *pragmas
    )
    database.execute("CREATE TABLE IF NOT EXISTS made (at INTEGER)")  # there is a log from here on
    wal.grow(str(path))
    return database


def connect(path: Path) -> Database:
    """A durable database with the one table."""
    database = durable(path)
    database.execute(_TABLE)
    return database


class BareWriter:
    """One thread that commits everything that waits together, as ours does, or each apart."""

    def __init__(self, database: Database, *, together: bool = True) -> None:
        self._database = database
        self._batch = _BATCH if together else 1
        self._queue: SimpleQueue[tuple[str, Values, asyncio.Future[Any]] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    async def write(self, statement: str, values: Values) -> None:
        """Returns when it is on disk."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put((statement, values, future))
        await future

    def close(self) -> None:
        """Stop."""
        self._queue.put(None)
        self._thread.join()
        self._database.close()

    def _run(self) -> None:
        execute = self._database.execute
        while (item := self._queue.get()) is not None:
            done: list[asyncio.Future[Any]] = []
            execute("BEGIN IMMEDIATE")
            while item is not None:
                statement, values, future = item
                execute(statement, values)
                done.append(future)
                try:
                    item = self._queue.get_nowait() if len(done) < self._batch else None
                except Empty:
                    break
            execute("COMMIT")
            self._loop.call_soon_threadsafe(_settle, done)


def _settle(done: list[asyncio.Future[Any]]) -> None:
    for future in done:
        if not future.done():
            future.set_result(None)
