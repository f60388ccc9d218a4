"""Python programs that are forked from a process which has their modules loaded.

A program spends most of its first moments on that, and it is the same every time: none of ours
notes anything about its process when it is loaded. Where a test changes what an interpreter reads
when it starts, or asks what a program loads, the program has to be started as usual; so has one
whose command line or first environment somebody reads in /proc.
"""

import contextlib
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Self

_FORKING = str(Path(__file__).parent / "forking.py")
_FORKED = str(Path(__file__).parent / "forked.py")
_READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "LD_", "MALLOC")

MODULES = (
    "apsw",
    "asyncio",
    "concurrent.futures",
    "email.message",
    "procrastinate",
    "psutil",
    "psycopg",
    "subprocess",
    "tempfile",
    "typer._adapters",
    "typer.main",
    "urllib.parse",
    "zoneinfo",
    "backburner.app.home",
    "backburner.app.runs",
    "backburner.cli.commands.logs",
    "backburner.cli.commands.ls",
    "backburner.cli.commands.run",
    "backburner.cli.commands.show",
    "backburner.cli.commands.stop",
    "backburner.cli.commands.wait",
    "backburner.cli.commands.worker",
    "backburner.cli.program",
    "backburner.runtime.node",
    "backburner.store.postgres.store",
    "backburner.store.sqlite.store",
)
"""What others have written, and ours, of the command line and of workers."""


class Forked:
    """A program that was forked; as `subprocess.Popen` has it."""

    def __init__(self, status: int, pipes: Sequence[int | None]) -> None:
        self._status = os.fdopen(status, "rb", buffering=0)
        self.pid = int(self._status_line())
        self.returncode: int | None = None
        self._pidfd: int | None = None
        with contextlib.suppress(ProcessLookupError):  # it has ended already
            self._pidfd = os.pidfd_open(self.pid)
        into, out, err = pipes
        self.stdin: IO[bytes] | None = None if into is None else os.fdopen(into, "wb", 0)
        self.stdout: IO[bytes] | None = None if out is None else os.fdopen(out, "rb")
        self.stderr: IO[bytes] | None = None if err is None else os.fdopen(err, "rb")

    def _status_line(self) -> bytes:
        found = b""
        while not found.endswith(b"\n") and (more := self._status.read(1)):
            found += more
        return found

    def poll(self) -> int | None:
        """How it ended, if it has."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """How it ended."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = int(self._status_line() or -signal.SIGKILL)
            self._status.close()
            if self._pidfd is not None:
                os.close(self._pidfd)
                self._pidfd = None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To it, and to nobody who has its number after it."""
        if self.poll() is None and self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, given: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        """Give it this, and read all it says, until it has ended."""
        with ThreadPoolExecutor(3) as pool:
            feeding = pool.submit(_feed, self.stdin, given)
            reading = [pool.submit(_read, each) for each in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            feeding.result()
            out, err = (each.result() for each in reading)
        return out, err

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                pipe.close()
        self.wait()


class Nursery:
    """The process that is forked; one for each process that runs tests."""

    def __init__(self, modules: Sequence[str]) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("BACKBURNER_")}
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._address = f"backburner-nursery-{secrets.token_hex(8)}"
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
            door.bind("\0" + self._address)
            door.listen(64)
            self._process = self._started(environment, [theirs.fileno(), door.fileno()], modules)
        self._start = _read_at_start(os.environ)

    def _started(
        self, environment: dict[str, str], sockets: list[int], modules: Sequence[str]
    ) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, _FORKING, *map(str, sockets), *modules],
            cwd="/",
            env=environment,
            pass_fds=sockets,
            # Python looks at them when it starts, and its forks will have pipes.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def fits(self, environment: Mapping[str, str] = os.environ) -> bool:
        """Whether a program that begins now would find the same interpreter."""
        return self._start == _read_at_start(environment)

    def start(
        self,
        module: str,
        *arguments: str,
        environment: Mapping[str, str] = os.environ,
        cwd: Path | None = None,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> Forked:
        """As `python -m` would; each of the three is a descriptor, PIPE or DEVNULL."""
        given = {
            "module": module,
            "arguments": arguments,
            "environment": dict(environment),
            "cwd": str(cwd or os.getcwd()),
            "umask": _umask(),
        }
        request = os.memfd_create("request")
        with open(os.dup(request), "wb") as file:
            file.write(json.dumps(given).encode())
        os.lseek(request, 0, os.SEEK_SET)
        status, write_status = os.pipe()
        ends = [_ends(stdin, into=True), _ends(stdout), _ends(stderr)]
        theirs = [*(their for their, _ in ends), request, write_status]
        socket.send_fds(self._requests, [b"?"], theirs)
        for descriptor in theirs:
            if descriptor not in (stdin, stdout, stderr):
                os.close(descriptor)
        return Forked(status, [our for _, our in ends])

    def run(
        self, arguments: Sequence[str], stdin: str, time_limit: float
    ) -> "subprocess.CompletedProcess[bytes]":
        """The command line, as `subprocess.run` does."""
        with self.start("backburner.cli", *arguments) as forked:
            out, err = forked.communicate(stdin.encode(), time_limit)
        return subprocess.CompletedProcess([*arguments], forked.wait(), out, err)

    def command(self, module: str, *arguments: str) -> list[str]:
        """What somebody else may start in the place of `python -m`, where it `fits`.

        Signals but SIGTERM do not reach the program.
        """
        return [sys.executable, "-I", "-S", _FORKED, self._address, module, *arguments]

    def close(self) -> None:
        """No more programs."""
        self._requests.close()
        self._process.communicate(timeout=30)


_running: dict[tuple[str, ...], Nursery] = {}
_one_at_a_time = threading.Lock()


def nursery(*more: str) -> Nursery:
    """The one of this run of pytest which has these modules, too."""
    with _one_at_a_time:
        if more not in _running:
            _running[more] = Nursery((*MODULES, *more))
        return _running[more]


def close() -> None:
    """At the end of the run."""
    while _running:
        _running.popitem()[1].close()


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environment.items() if name.startswith(_READ_AT_START)}


def _umask() -> int:
    """Without changing it for a moment: another thread may ask too, and would set that one."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("Umask:"))[6:], 8)


def _ends(wanted: int, *, into: bool = False) -> tuple[int, int | None]:
    """Their end of a pipe, or what they get instead, and ours."""
    if wanted == subprocess.DEVNULL:
        return os.open(os.devnull, os.O_RDWR), None
    if wanted != subprocess.PIPE:
        return wanted, None
    reading, writing = os.pipe()
    return (reading, writing) if into else (writing, reading)


def _feed(pipe: IO[bytes] | None, data: bytes) -> None:
    if pipe is not None:
        with contextlib.suppress(BrokenPipeError), pipe:
            while data:
                data = data[pipe.write(data) or 0 :]


def _read(pipe: IO[bytes] | None) -> bytes:
    if pipe is None:
        return b""
    with pipe:
        return pipe.read()
