"""Applications of their own for tests of runs: small programs, written where they are needed."""

import contextlib
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path


class Program:
    """A Python program that talks in lines."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.pid = process.pid

    def line(self) -> str:
        """The next line that it writes."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def say(self, text: str) -> None:
        """A line for it to read."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def rest(self) -> str:
        """Wait for its end: what else it has written."""
        return self._process.communicate()[0]

    def kill(self) -> None:
        """At once."""
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def program(*words: str | Path) -> Generator[Program]:
    """`python WORDS…`, killed at the latest at the end."""
    process = subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Program(process)
    finally:
        process.kill()
        process.communicate()
