"""A real PostgreSQL for the tests: one server for each run of pytest, a database for each test.

It is started when the first test asks for it, by an ordinary user, on a free port and in a
temporary folder; it dies with the process that started it.
"""

import contextlib
import glob
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from backburner.store.postgres.migrations import migrated
from tests.waiting import wait_until

_REPOSITORY = Path(__file__).resolve().parent.parent
_SETTINGS = {
    "max_connections": "300",
    "shared_buffers": "32MB",
    # A machine that loses its power takes the test with it; a server that is killed loses nothing.
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "log_min_messages": "warning",
}

_RECORD = "record"
"""To be copied, which is many times as quick as to make one."""

_OTHERS = b"""SELECT 1 FROM pg_stat_activity
              WHERE datname = current_database() AND pid <> pg_backend_pid()"""
_TABLES = b"""SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
              WHERE schemaname = 'backburner' AND tablename <> 'format'"""


def program(name: str) -> str:
    """One of PostgreSQL's programs."""
    folders = [*sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True), os.environ["PATH"]]
    folders.append(f"{_REPOSITORY}/.services/pgserver/pginstall/bin")
    found = shutil.which(name, path=os.pathsep.join(folders))
    if found is None:
        pytest.fail(f"{name} is missing: run `make services`, or install PostgreSQL")
    return found


class Server:
    """One of them."""

    def __init__(self, *, listen: str = "127.0.0.1") -> None:
        self._listen = listen
        self.folder = Path(tempfile.mkdtemp(prefix="bb-pg-"))
        self.data = self.folder / "data"
        self._numbers = itertools.count()
        self._has_record = False
        self._free: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        if os.geteuid() == 0:
            shutil.chown(self.folder, self._user)
        self.port = _free_port()
        subprocess.run(
            [*self._as_user(), program("initdb"), "--no-sync", "--auth=trust", "--username=test",
             "--encoding=UTF8", "--locale=C", "--pgdata", str(self.data)],
            check=True, capture_output=True, cwd=self.folder,
        )  # fmt: skip
        with open(self.data / "pg_hba.conf", "a") as file:
            file.write("host all all samenet trust\n")
        self.start()

    def _as_user(self, *more: str) -> list[str]:
        """Root may not run it."""
        if os.geteuid() != 0:
            return ["setpriv", *more] if more else []
        entry = pwd.getpwnam(self._user)
        ids = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        return ["setpriv", *ids, *more]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        given = {**_SETTINGS, "listen_addresses": self._listen}
        settings = [f"--{name}={value}" for name, value in given.items()]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*self._as_user("--pdeathsig", "QUIT"), program("postgres"), "-D", str(self.data),
                 f"--port={self.port}", f"--unix_socket_directories={self.folder}", *settings],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                env={"PATH": os.environ["PATH"]},  # it belongs to no test
            )  # fmt: skip
        wait_until(self.answers, timeout=60, message=self._said)

    def _said(self) -> str:
        return (self.folder / "log").read_text()

    def answers(self) -> bool:
        """Whether it lets one in."""
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.address("postgres")).close()
            return True
        return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends every connection in order, SIGQUIT at once, as a crash would."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(60)
        self._process = None

    def address(self, database: str) -> str:
        """Of one database."""
        return f"postgresql://test@{self._listen}:{self.port}/{database}"

    def create(self) -> str:
        """A database that holds an empty record; its address."""
        if not self._has_record:
            self.run(f"CREATE DATABASE {_RECORD}")
            migrated(self.address(_RECORD)).close()
            self._has_record = True
        return self._copy_of(_RECORD)

    def create_empty(self) -> str:
        """One that holds nothing."""
        return self._copy_of("template1")

    def _copy_of(self, template: str) -> str:
        name = f"t{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.address(name)

    def borrow(self) -> str:
        """As `create`, for one who brings it back: it may have been another's."""
        return self._free.pop() if self._free else self.create()

    def give_back(self, address: str) -> None:
        """Empty it for the next test; whoever is connected to it is a leak."""
        with psycopg.connect(address, autocommit=True) as connection:
            wait_until(
                lambda: not connection.execute(_OTHERS).fetchall(),
                message="a closed store has left a connection behind",
            )
            tables = [name for (name,) in connection.execute(_TABLES).fetchall()]
            if tables:
                connection.execute(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY".encode())
        self._free.append(address)

    def drop(self, address: str) -> None:
        """It is not needed any more; whoever is connected to it is sent away."""
        self.run(f"DROP DATABASE {address.rpartition('/')[2]} WITH (FORCE)")

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """As the administrator."""
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return [] if cursor.description is None else cursor.fetchall()

    def close(self) -> None:
        """Stop it, and remove all of it."""
        if self._process is not None:
            self.stop()
        shutil.rmtree(self.folder)


_running: list[Server] = []


def server() -> Server:
    """The server of this run. To be called in the main thread: it dies with the one that did."""
    if not _running:
        _running.append(Server())
    return _running[0]


def close() -> None:
    """At the end of the run."""
    while _running:
        _running.pop().close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
