"""The other process of the raw limits in `ending` and `stop`: datagrams and durable commits.

`python -m bench.peer DATABASE OWN_SOCKET CALLERS_SOCKET`. It answers each datagram with the time
in nanoseconds at which it was done:
  claim ID      one durable commit, as a consumer makes that takes a signal
  end ID PID    TERM to the process group, wait for the process, one durable commit
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

from bench import bare


def serve(database: str, own: str, callers: str) -> None:
    """Until it is killed."""
    connection = bare.connect(Path(database))
    line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    line.bind(own)
    line.sendto(b"ready", callers)
    while True:
        verb, task_id, *rest = line.recv(1024).decode().split()
        if verb == "end":
            pid = int(rest[0])
            process = os.pidfd_open(pid)
            os.killpg(pid, signal.SIGTERM)
            select.select([process], [], [])
            os.close(process)
        connection.execute(bare.FINISH, (time.time_ns(), task_id))
        line.sendto(str(time.time_ns()).encode(), callers)


class Peer:
    """The calling end of the line."""

    def __init__(self, line: socket.socket, address: str) -> None:
        self._line = line
        self._address = address

    def ask(self, *words: str) -> int:
        """Send a request; answers when it was done, in nanoseconds."""
        self._line.sendto(" ".join(words).encode(), self._address)
        return int(self._line.recv(64))


@contextlib.contextmanager
def peer(folder: Path, database: Path) -> Generator[Peer]:
    """The other process, running."""
    own, theirs = str(folder / "caller.socket"), str(folder / "peer.socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(own)
        process = subprocess.Popen([sys.executable, "-m", "bench.peer", str(database), theirs, own])
        try:
            line.settimeout(30)
            line.recv(64)
            line.settimeout(None)
            yield Peer(line, theirs)
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    serve(*sys.argv[1:])
