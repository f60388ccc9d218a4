"""Real applications for the tests: `tests/nodes/application.py`, a process and a home each."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.nursery import nursery


class ApplicationProcess:
    """One of them."""

    def __init__(self, address: str, home: Path, **settings: str) -> None:
        self._log = home.parent / f"{home.name}.log"
        environment = {**os.environ, "BACKBURNER_HOME": str(home), **settings}
        with open(self._log, "ab") as log:
            self.process = nursery().start(
                "tests.nodes.application",
                address,
                environment=environment,
                cwd=REPOSITORY,
                stderr=log.fileno(),
            )
        assert self._line() == "open", self._log.read_text()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip()

    def ask(self, *starts: tuple[str, str, dict[str, str]]) -> None:
        """Start these at once: a session, a tool, its arguments."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(starts).encode() + b"\n")

    def answers(self) -> list[str]:
        """The ids of what it was asked to start, or codes of errors."""
        found: list[str] = []
        while (line := self._line()) != "done":
            assert line, self._log.read_text()
            found.append(line)
        return found

    def start(self, session: str, tool: str, **arguments: str) -> str:
        self.ask((session, tool, arguments))
        (found,) = self.answers()
        return found

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """As a crash would."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """It closes by itself; killed where it does not."""
        self.go_on()
        if self.process.stdin is not None and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()
