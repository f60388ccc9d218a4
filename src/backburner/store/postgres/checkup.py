"""Looking at the whole record and its database, for whoever has to keep them well. Only reads."""

from collections.abc import Generator
from contextlib import contextmanager

from backburner.model.clock import Instant
from backburner.model.node import SeenNode
from backburner.model.values import value
from backburner.store.postgres.clock import DatabaseClock
from backburner.store.postgres.connection import connect, explained
from backburner.store.postgres.engine import TASK
from backburner.store.postgres.migrations import Format, format_of, migrate, newest
from backburner.store.postgres.nodes import seen_node
from backburner.store.postgres.reader import Glancer
from backburner.store.postgres.shape import grant_again, missing

_SILENCE_S = 90.0
"""It reads all of a record: longer than the database lets a statement take."""


@value
class Server:
    """The database itself."""

    version: str
    now: Instant
    bytes: int
    mirror_bytes: int
    connections: int
    most_connections: int
    standby: bool
    """It only follows another one, and cannot be written to."""
    read_only: bool
    """So this user, the database or the server is set."""

    @property
    def why_unwritable(self) -> tuple[str, str] | None:
        """What keeps the record from being written, and what to do; None where nothing does."""
        if self.standby:
            return (
                "which only follows another one",
                "give the address of the one that is written to",
            )
        if self.read_only:
            return (
                "which this user may only read",
                "default_transaction_read_only has to be off: see ALTER ROLE, ALTER DATABASE",
            )
        return None


@value
class Transaction:
    """One that is open for long."""

    pid: int
    program: str
    machine: str
    seconds: float
    waits: bool
    """For a lock of somebody else."""


@value
class Line:
    """Tasks that wait for a worker of their sort, and there is none."""

    name: str
    """Of a queue, or `tool:NAME`, `agent:NAME`, `node:NAME`."""
    tasks: int


@value
class Breaches:
    """What must never be true, and how often it is."""

    jobs_without_tasks: int
    tasks_without_jobs: int
    running_nowhere: int
    events_missing: int
    ends_not_told_once: int
    missing: list[str]
    """What a record of this format has beside its tables."""
    tasks: int
    """How many were looked at."""


class Checkup:
    """One look at a database, which is the same moment for every question."""

    def __init__(self, reader: Glancer, found: Format) -> None:
        self._reader = reader
        self.format = found

    def server(self) -> Server:
        """The database."""
        return Server(*self._reader.rows("check_server")[0])

    def transactions(self, longer_s: float) -> list[Transaction]:
        """Those that are open for longer."""
        rows = self._reader.rows("check_transactions", longer_s=longer_s)
        return [Transaction(*row) for row in rows]

    def nodes(self) -> list[SeenNode]:
        """Workers and applications, dead or alive."""
        return [seen_node(row) for row in self._reader.rows("nodes")]

    def lines(self) -> list[Line]:
        """Where tasks wait that no worker takes."""
        return [
            Line(line if ":" in line else queue or line, tasks)
            for line, queue, tasks in self._reader.rows("check_lines")
        ]

    def queues(self) -> list[str]:
        """Those that somebody has made."""
        return [name for (name,) in self._reader.rows("check_queues")]

    def active(self) -> tuple[int, int]:
        """How many tasks wait, and how many run."""
        waiting, running = self._reader.rows("check_waiting")[0]
        return waiting, running

    def dead_letters(self) -> int:
        """Signals that no channel could deliver."""
        return self._reader.rows("check_dead_letters")[0][0]

    def breaches(self) -> Breaches:
        """Whether the invariants hold that no single row can tell."""
        count = self._reader.rows
        events, ends, tasks = count("check_events")[0]
        return Breaches(
            jobs_without_tasks=count("check_jobs_without_tasks", name=TASK)[0][0],
            tasks_without_jobs=count("check_tasks_without_jobs", name=TASK)[0][0],
            running_nowhere=count("check_running_nowhere")[0][0],
            events_missing=events,
            ends_not_told_once=ends,
            missing=missing(count("check_shape")) if self.format.number == newest() else [],
            tasks=tasks,
        )


@contextmanager
def checkup(address: str) -> Generator[Checkup]:
    """Look at a database. StoreUnusable where it cannot be reached."""
    with explained():
        connection = connect(address, standby=True)
    connection.silence_s = _SILENCE_S
    try:
        with explained():
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            found = format_of(connection)
        yield Checkup(Glancer(connection, DatabaseClock.of(connection)), found)
    finally:
        connection.close()


@value
class Migrated:
    """What a migration did."""

    before: int
    after: int
    oldest: int
    applied: list[str]
    granted: list[str]
    """Rights that were gone."""


def bring_up_to_date(address: str) -> Migrated:
    """Give the record the newest shape, under the lock of its writers."""
    with explained():
        connection = connect(address, standby=True)
    try:
        with explained():
            before = format_of(connection).number
        applied = migrate(connection)
        with explained():
            after = format_of(connection)
            granted = grant_again(connection) if after.number == newest() else []
    finally:
        connection.close()
    return Migrated(before, after.number, after.oldest, applied, granted)


def newest_format() -> int:
    """Of this program."""
    return newest()
