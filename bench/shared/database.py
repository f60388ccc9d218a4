"""One PostgreSQL for ours and for Procrastinate alone, a database for each, and what it costs.

Durable as it comes: fsync and synchronous_commit are on. What it costs is asked of the server's
own processes and of the database, so that the same question is put to both.
"""

import contextlib
import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psycopg

from bench.peers.servers import server

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
FROM_STATEMENTS = (
    "FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid"
    " WHERE d.datname = current_database()"
)
_STATEMENTS = f"SELECT coalesce(sum(calls), 0) {FROM_STATEMENTS}"
_COMMITS = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
"""Only who changes something is given a number, at once. `pg_stat_database` counts looks as well,
and hears of them late: of a connection that has nothing more to do after ten seconds, so what was
measured had the commits of what came before it."""
SIGNS = "number = excluded.number|_at_once"
"""What a writer says once for each commit: its number, or the one statement that is all of it."""
_WRITES = "^COMMIT$|_at_once"
"""What a connection has said last that writes; no other has transactions."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What was used up to a moment, or between two."""

    cpu_s: float = 0.0
    commits: int = 0
    """Of transactions that have changed something."""
    wal_bytes: int = 0
    statements: int = 0

    def __add__(self, more: Self) -> "Cost":
        return Cost(
            self.cpu_s + more.cpu_s,
            self.commits + more.commits,
            self.wal_bytes + more.wal_bytes,
            self.statements + more.statements,
        )

    def __sub__(self, before: Self) -> "Cost":
        return Cost(
            self.cpu_s - before.cpu_s,
            self.commits - before.commits,
            self.wal_bytes - before.wal_bytes,
            self.statements - before.statements,
        )

    def a_second(self, seconds: float) -> str:
        """In words."""
        return (
            f"{self.statements / seconds:.0f} statements, {self.commits / seconds:.1f} commits, "
            f"{self.wal_bytes / seconds / 1024:.0f} KiB of log and "
            f"{self.cpu_s / seconds * 1e3:.0f} ms of the database's processor a second"
        )


class Database:
    """One database of the server."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self.name = name
        self.address = f"postgresql://bench@/{name}?host={folder}"
        self._connection = psycopg.connect(self.address, autocommit=True)
        self._connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    def address_of(self, client: str) -> str:
        """The same for one client, whose processor time in the server can be told then."""
        return f"{self.address}&application_name={client}"

    def grows_up(self) -> None:
        """What a database does by itself in its first minutes: plans of empty tables read all."""
        self._connection.execute("ANALYZE")

    def ask(self, question: str) -> Any:
        """The one value that a statement gives."""
        row = self._connection.execute(question.encode()).fetchone()
        return row[0] if row else None

    def cost(self) -> Cost:
        """Up to now; of the whole server, but for the statements."""
        return Cost(
            self._cpu_s(),
            int(self.ask(_COMMITS)),
            int(self.ask("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")),
            int(self.ask(_STATEMENTS)),
        )

    def cpu_of(self, client: str, *, writing: bool | None = None) -> float:
        """Of the connections that a client has now; of those that write, or of the others."""
        found = self._connection.execute(
            "SELECT pid, query ~ %s FROM pg_stat_activity"
            " WHERE datname = %s AND application_name LIKE %s",
            (_WRITES, self.name, client),
        ).fetchall()
        total = 0.0
        for pid, writes in found:
            if writing is None or writing == writes:
                with contextlib.suppress(OSError):
                    total += sum(_ticks(str(pid))) * _TICK_S
        return total

    def _cpu_s(self) -> float:
        """Of the server and of all its processes, those that have ended too."""
        first = (Path(self._folder) / "data" / "postmaster.pid").read_text().split()[0]
        ticks = sum(_ticks(first, ended_children=True))
        for child in Path(f"/proc/{first}/task/{first}/children").read_text().split():
            with contextlib.suppress(OSError):
                ticks += sum(_ticks(child))
        return ticks * _TICK_S

    def close(self) -> None:
        """Leave it."""
        self._connection.close()


def _ticks(pid: str, *, ended_children: bool = False) -> list[int]:
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat[stat.rindex(")") + 2 :].split()
    return [int(field) for field in fields[11 : 15 if ended_children else 13]]


@contextlib.contextmanager
def databases(*names: str) -> Generator[list[Database]]:
    """A fresh server with a database of each name."""
    with server("postgres") as address, contextlib.ExitStack() as stack:
        folder = dict(word.split("=", 1) for word in address.split())["host"]
        with psycopg.connect(address, autocommit=True) as connection:
            for name in names:
                connection.execute(f"CREATE DATABASE {name}".encode())
        found = [Database(folder, name) for name in names]
        for each in found:
            stack.callback(each.close)
        yield found
