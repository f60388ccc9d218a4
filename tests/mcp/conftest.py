"""Servers of MCP as processes of their own."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.mcp.client import MCP, REPOSITORY
from tests.nursery import Forked, nursery

Serve = Callable[..., "tuple[str, Forked]"]


@pytest.fixture
def no_session_from_outside(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each client has the session that follows from its name and its folder."""
    monkeypatch.delenv("BACKBURNER_SESSION")


@pytest.fixture
def serve_http(home: Path) -> Iterator[Serve]:
    """Starts a program that prints its address as JSON; answers that, and its process."""
    running: list[Forked] = []

    def start(*words: str) -> tuple[str, Forked]:
        assert words[0] == "-m"
        process = nursery(*MCP).start(
            *words[1:], cwd=REPOSITORY, stdin=subprocess.DEVNULL, stderr=2
        )
        running.append(process)
        assert process.stdout is not None
        return json.loads(process.stdout.readline())["url"], process

    yield start
    for process in running:
        process.terminate()
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()
