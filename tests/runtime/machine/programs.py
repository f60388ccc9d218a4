"""Applications in processes of their own, as the machine tells them what to do."""

import json
import os
import subprocess
import sys
from typing import Any

from tests.conftest import REPOSITORY
from tests.runtime.machine.grounds import Ground


class Program:
    """One of them, from its start to its end."""

    def __init__(self, ground: Ground, name: str) -> None:
        self.name = name
        self._complaints = ground.folder / f"{name}.log"
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.runtime.machine.application", ground.address],
                cwd=REPOSITORY,
                env={**os.environ, **ground.environment()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            )
        self.pid = self._process.pid
        self._answer()

    def obey(self, do: str, *, session: str = "one", tool: str = "", **more: Any) -> str | None:
        """The id of the task that came of a command, if one did."""
        self.tell(do, session=session, tool=tool, **more)
        return self._answer()

    def tell(self, do: str, *, session: str = "one", tool: str = "", **more: Any) -> None:
        """The command alone, without waiting for what comes of it."""
        command: dict[str, Any] = {"do": do, "session": session, "tool": tool}
        command |= {"arguments": {}, "options": {}}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command | more) + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """At once."""
        self._process.kill()
        self._process.communicate()

    def close(self) -> None:
        """In order: its commands end."""
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0, self._said()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._said()
        return json.loads(line)

    def _said(self) -> str:
        return f"{self.name}: {self._complaints.read_text()}"
