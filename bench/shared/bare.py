"""The raw limit of `reach`: two processes with bare connections to the same PostgreSQL.

`python -m bench.shared.bare ADDRESS` is the other machine. What it is told it is told by a durable
commit with NOTIFY, and it answers with one:
  stop PID    TERM to the process group, wait for its end
  end         nothing; a consumer's own durable commit comes before the answer
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import psycopg

_TABLE = b"CREATE TABLE IF NOT EXISTS bare (id BIGSERIAL PRIMARY KEY, said TEXT)"
_SAY = b"INSERT INTO bare (said) VALUES (%(words)s)"
_NAP_S = 0.01
_SCRIPT = 'trap : TERM; ( exec "$@" )'
_WRITES_CODE = '( exec "$@" ); echo $? > "$0"'


class Line:
    """One end of it."""

    def __init__(self, address: str, own: str, other: str) -> None:
        self._other = other
        self._connection = psycopg.connect(address, autocommit=True)
        self._connection.execute(b"LISTEN " + own.encode())

    def say(self, words: str) -> None:
        """One durable commit, and the news of it."""
        with self._connection.transaction():
            self._connection.execute(_SAY, {"words": words})
            self._connection.execute("SELECT pg_notify(%s, %s)", (self._other, words))

    def note(self, words: str) -> None:
        """One durable commit that nobody is told of."""
        self._connection.execute(_SAY, {"words": words})

    def hear(self) -> str:
        """The next that comes."""
        return next(self._connection.notifies(stop_after=1)).payload


class Bare:
    """This end, for what is measured."""

    def __init__(self, line: Line, folder: Path) -> None:
        self._line = line
        self._folder = folder

    def stop(self) -> float:
        """Of a job that ends at TERM, from the request to the news of its end."""
        null = os.open(os.devnull, os.O_WRONLY)
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _SCRIPT, "sh", "sleep", "600"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 2)],  # a shell says what its child died of
            setsid=True,
        )
        os.close(null)
        while command_of_child(pid) != "sleep":
            time.sleep(_NAP_S)
        began = time.perf_counter()
        self._line.say(f"stop {pid}")
        self._line.hear()
        took = time.perf_counter() - began
        os.waitpid(pid, 0)
        return took

    def end(self) -> float:
        """From the last act of a job to a consumer that has claimed the news of its end."""
        code, log = self._folder / "exit", self._folder / "log"
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _WRITES_CODE, str(code), "date", "+%s%N"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, output, 1)],
            setsid=True,
        )
        process = os.pidfd_open(pid)
        os.close(output)
        select.select([process], [], [])
        os.close(process)
        self._line.say("end")
        came = int(self._line.hear())
        os.waitpid(pid, 0)
        return (came - int(log.read_text())) / 1e9


def command_of_child(pid: int) -> str:
    """What a shell has started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return Path(f"/proc/{children[0]}/comm").read_text().strip() if children else ""
    except OSError:
        return ""


@contextlib.contextmanager
def bare(address: str, folder: Path) -> Generator[Bare]:
    """With the other machine at work."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(_TABLE)
    line = Line(address, "here", "there")
    process = subprocess.Popen([sys.executable, "-m", "bench.shared.bare", address])
    try:
        line.hear()
        yield Bare(line, folder)
    finally:
        process.kill()
        process.wait()


def _serve(address: str) -> None:
    line = Line(address, "there", "here")
    line.say("ready")
    while True:
        verb, *rest = line.hear().split()
        if verb == "stop":
            pid = int(rest[0])
            process = os.pidfd_open(pid)
            os.killpg(pid, signal.SIGTERM)
            select.select([process], [], [])
            os.close(process)
            line.say("stopped")
        else:
            came = time.time_ns()
            line.note("claimed")
            line.say(str(came))


if __name__ == "__main__":
    _serve(sys.argv[1])
