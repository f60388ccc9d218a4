"""Running the real `backburner` as a person or a script does: in a process, or in a terminal."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from tests.nursery import Nursery
from tests.waiting import wait_until

_DRAWING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x08")

COMMAND = [sys.executable, "-m", "backburner.cli"]
TIME_LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class Result:
    """How a run of the program ended."""

    code: int
    out: str
    err: str

    @property
    def id(self) -> str:
        """The id that it printed, alone."""
        assert self.code == 0, self
        assert self.out.count("\n") == 1, self
        return self.out.strip()

    @property
    def json(self) -> Any:
        """The one document that it printed."""
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        """The documents that it printed, a line each."""
        return [json.loads(line) for line in self.out.splitlines()]


class Program:
    """Calls the program with the environment of the test."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery

    def __call__(self, *arguments: str, stdin: str = "", privileged: bool = True) -> Result:
        if privileged and self._nursery.fits():
            run = self._nursery.run(arguments, stdin, TIME_LIMIT)
            return Result(run.returncode, run.stdout.decode(), run.stderr.decode())
        # Root without its capabilities is refused what anybody else would be refused.
        drop = [] if privileged or os.getuid() else ["setpriv", "--bounding-set=-all"]
        done = subprocess.run(
            [*drop, *COMMAND, *arguments],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            timeout=TIME_LIMIT,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    @contextlib.contextmanager
    def started(self, *arguments: str) -> Generator["Running"]:
        """The program while it runs, with pipes; killed when the test is done with it."""
        with subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
        ) as process:
            try:
                yield Running(process)
            finally:
                process.kill()

    @contextlib.contextmanager
    def in_terminal(
        self, *arguments: str, columns: int = 100, lines: int = 30
    ) -> Generator["Terminal"]:
        """The program in a terminal of this size."""
        ours, theirs = pty.openpty()
        before = termios.tcgetattr(ours)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            yield Terminal(process, ours, before)
        finally:
            process.kill()
            process.wait()
            os.close(ours)


class Running:
    """A program that has not ended."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.out = b""

    def read_until(self, text: str) -> str:
        """Read standard output until it contains this."""
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()

        def found() -> bool:
            if select.select([fd], [], [], 0)[0]:
                self.out += os.read(fd, 65536)
            return text.encode() in self.out

        wait_until(found, message=lambda: f"{text!r} is not in {self.out!r}")
        return self.out.decode()

    def interrupt(self) -> Result:
        """Ctrl-C; how it ended."""
        self.process.send_signal(signal.SIGINT)
        return self.end()

    def end(self) -> Result:
        """Wait for the end."""
        out, err = self.process.communicate(timeout=TIME_LIMIT)
        return Result(self.process.returncode, (self.out + out).decode(), err.decode())


class Terminal:
    """A program in a terminal."""

    def __init__(self, process: "subprocess.Popen[bytes]", fd: int, before: list[Any]) -> None:
        self.process = process
        self.before = before
        """The settings that the program found."""
        self._fd = fd
        self._seen = b""

    def _read(self) -> bool:
        """Take what is there; whether there may be more."""
        try:
            while select.select([self._fd], [], [], 0)[0]:
                part = os.read(self._fd, 65536)
                if not part:
                    return False
                self._seen += part
        except OSError:  # the other end is closed: so a terminal says that it is over
            return False
        return True

    def read_until(self, text: str, *, then: str = "") -> str:
        """Everything that was shown, once this is in it, and ``then`` after it."""

        def found() -> bool:
            self._read()
            _, shown, rest = self._seen.rpartition(text.encode())
            return bool(shown) and then.encode() in rest

        wait_until(
            found,
            message=lambda: f"{text!r}, then {then!r} is not in {self._seen!r}",
        )
        return self._seen.decode()

    def read_words(self, text: str, *, then: str = "") -> str:
        """The same for a program that draws: what it has written, without how and where."""

        def found() -> bool:
            self._read()
            _, shown, rest = self.words.rpartition(text)
            return bool(shown) and then in rest

        wait_until(found, message=lambda: f"{text!r}, then {then!r} is not in {self.words!r}")
        return self.words

    @property
    def words(self) -> str:
        """What was written so far, without the sequences that draw."""
        return _DRAWING.sub("", self._seen.decode(errors="replace")).replace("\r", "")

    def read_to_end(self) -> str:
        """Everything that was shown."""
        wait_until(lambda: not self._read(), message=lambda: f"goes on after {self._seen!r}")
        self.process.wait(TIME_LIMIT)
        return self._seen.decode().replace("\r\n", "\n")

    def type(self, keys: str) -> None:
        """As a person at the keyboard."""
        os.write(self._fd, keys.encode())

    def settings(self) -> list[Any]:
        """What the terminal does with keys and lines: a program has to leave it as it was."""
        return termios.tcgetattr(self._fd)

    def close(self) -> int:
        """As when a person closes the window; the exit status."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, self._fd)
        os.close(nowhere)
        return self.process.wait(TIME_LIMIT)

    def interrupt(self) -> int:
        """Ctrl-C as the terminal sends it; the exit status."""
        self.process.send_signal(signal.SIGINT)
        self.read_to_end()
        return self.process.returncode

    def resize(self, *, columns: int, lines: int) -> None:
        """As when a person drags the corner of the window."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)
