"""Servers of MCP as processes of their own."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.mcp.client import REPOSITORY

Serve = Callable[..., "tuple[str, subprocess.Popen[str]]"]


@pytest.fixture
def no_session_from_outside(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each client has the session that follows from its name and its folder."""
    monkeypatch.delenv("BACKBURNER_SESSION")


@pytest.fixture
def serve_http(home: Path) -> Iterator[Serve]:
    """Starts a program that prints its address as JSON; answers that, and its process."""
    running: list[subprocess.Popen[str]] = []

    def start(*words: str) -> tuple[str, subprocess.Popen[str]]:
        process = subprocess.Popen(
            [sys.executable, *words], stdout=subprocess.PIPE, encoding="utf-8", cwd=REPOSITORY
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
