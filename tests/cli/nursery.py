"""Runs of the program that are forked from a process which has its libraries loaded.

A run spends most of its time on loading what others have written, which is the same every time.
Its own modules it loads itself. Where a test changes what an interpreter reads when it starts, the
run has to be started as usual.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_FORKING = str(Path(__file__).parent / "forking.py")
_READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "LD_", "MALLOC")


class Nursery:
    """The process that is forked; one for each process that runs tests."""

    def __init__(self) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BACKBURNER_")}
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, _FORKING, str(theirs.fileno())],
            cwd="/",
            env=environment,
            pass_fds=[theirs.fileno()],
            # Python looks at them when it starts, and its forks will have pipes.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        theirs.close()
        self._start = _read_at_start()

    def fits(self) -> bool:
        """Whether a run that begins now would find the same interpreter."""
        return self._start == _read_at_start()

    def run(
        self, arguments: Sequence[str], stdin: str, time_limit: float
    ) -> "subprocess.CompletedProcess[bytes]":
        """As `subprocess.run` does."""
        theirs, (write_in, out, err, status) = self._ask(arguments)
        for descriptor in theirs:
            os.close(descriptor)
        with ThreadPoolExecutor(3) as pool:
            feeding = pool.submit(_feed, write_in, stdin.encode())
            reading = pool.submit(_read, out), pool.submit(_read, err)
            with os.fdopen(status, "r") as lines:
                pid = int(lines.readline())
                timer = threading.Timer(time_limit, os.kill, (pid, signal.SIGKILL))
                timer.start()
                code = int(lines.readline())
                in_time = timer.is_alive()
                timer.cancel()
            feeding.result()
            said = [each.result() for each in reading]
        if not in_time:
            raise subprocess.TimeoutExpired([*arguments], time_limit, *said)
        return subprocess.CompletedProcess([*arguments], code, *said)

    def _ask(self, arguments: Sequence[str]) -> tuple[list[int], tuple[int, int, int, int]]:
        """Their ends of the pipes, and ours."""
        given = {
            "arguments": list(arguments),
            "environment": dict(os.environ),
            "cwd": os.getcwd(),
            "umask": _umask(),
        }
        request = os.memfd_create("request")
        with open(os.dup(request), "wb") as file:
            file.write(json.dumps(given).encode())
        os.lseek(request, 0, os.SEEK_SET)
        pipes = [os.pipe() for _ in range(4)]
        (read_in, write_in), (out, write_out), (err, write_err), (status, write_status) = pipes
        theirs = [read_in, write_out, write_err, request, write_status]
        socket.send_fds(self._requests, [b"?"], theirs)
        return theirs, (write_in, out, err, status)

    def close(self) -> None:
        """No more runs."""
        self._requests.close()
        self._process.communicate(timeout=30)


def _read_at_start() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_READ_AT_START)}


def _umask() -> int:
    """Without changing it for a moment: another thread may ask too, and would set that one."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("Umask:"))[6:], 8)


def _feed(descriptor: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), open(descriptor, "wb", buffering=0) as pipe:
        while data:
            data = data[pipe.write(data) or 0 :]


def _read(descriptor: int) -> bytes:
    with open(descriptor, "rb") as pipe:
        return pipe.read()
