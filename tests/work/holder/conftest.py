"""Jobs with input behind a real wrapper and a real holder, without a keeper."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from backburner.work.process.condition import Condition, inspect
from tests.waiting import wait_until
from tests.work.process.conftest import Started, StartWrapper, start_wrapper

__all__ = ["start_wrapper"]


class Held:
    """A job behind a holder."""

    def __init__(self, started: Started) -> None:
        self.started = started
        self.folder = started.folder

    def output(self) -> bytes:
        """What it has written so far."""
        return Path(self.folder.log).read_bytes()

    def said(self, text: str) -> bytes:
        """Its output, once this is in it."""
        wait_until(
            lambda: text.encode() in self.output(),
            message=lambda: f"{text[:60]!r} is not in {self.output()[-300:]!r}",
        )
        return self.output()

    def ended(self) -> Condition:
        """How it ended, once it has."""
        self.started.collect()
        return inspect(self.folder)

    def holder(self) -> int:
        """The process between wrapper and command."""
        path = f"/proc/{self.started.pid}/task/{self.started.pid}/children"
        (pid,) = wait_until(lambda: Path(path).read_text(encoding="ascii").split())
        return int(pid)


StartHeld = Callable[..., Held]


@pytest.fixture
def hold(start_wrapper: StartWrapper) -> StartHeld:
    """Starts `argv` with its input as a pipe, or as told; one word is a line for bash."""

    def start(*argv: str, input: str = "pipe", **how: Any) -> Held:
        if len(argv) == 1:
            argv = ("bash", "-c", *argv)
        how.setdefault("environment", {"PATH": os.environ["PATH"], "TERM": "xterm"})
        return Held(start_wrapper(*argv, input=input, **how))

    return start
