"""Real workers for the tests: `backburner worker`, a process and a folder each."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.nursery import Forked, nursery
from tests.waiting import wait_until


class WorkerProcess:
    """One of them; its machine is its home."""

    def __init__(
        self,
        address: str,
        home: Path,
        *options: str,
        enter: Sequence[str] = (),
        folder: Path | None = None,
        forked: bool = True,
        **settings: str,
    ) -> None:
        """``enter`` stands before its command: it may be on a machine of its own.

        Not ``forked`` where somebody reads its command line.
        """
        self.home = home
        self._folder = folder
        self._log = home.parent / f"{home.name}.log"
        self._enter = enter
        self._forked = forked and not enter
        self._words = ["worker", "--home", str(home), "--concurrency", "8", *options]
        self._environment = {**os.environ, "BACKBURNER_DATABASE": address, **settings}
        self.start()

    def start(self) -> None:
        """And wait until it takes tasks on."""
        self.begin()
        self.until_ready()

    def begin(self) -> None:
        """Start it, whoever it has to wait for."""
        self._begins = self.said().count("takes on")
        with open(self._log, "ab") as log:
            self.process = self._started(log.fileno())

    def _started(self, log: int) -> "subprocess.Popen[bytes] | Forked":
        if self._forked and nursery().fits(self._environment):
            return nursery().start(
                "backburner.cli",
                *self._words,
                environment=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return subprocess.Popen(
            [*self._enter, sys.executable, "-m", "backburner.cli", *self._words],
            env=self._environment,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )

    def until_ready(self) -> None:
        """Wait until it takes tasks on; it must not have ended."""
        wait_until(
            lambda: self.said().count("takes on") > self._begins or self.process.poll() is not None,
            timeout=60,
            message=self.said,
        )
        assert self.process.poll() is None, self.said()

    def said(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return self._log.read_text()
        return ""

    def kill(self) -> None:
        """As a crash would."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Its machine stands still."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def drain(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def leave(self) -> None:
        """At once; what runs goes on."""
        for _ in range(600):
            if self.process.poll() is not None:
                return
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)
        self.kill()
