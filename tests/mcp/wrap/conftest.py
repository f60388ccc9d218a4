"""Clients before a wrapped server: the official one, and one that writes the messages itself."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult

from backburner import Backburner
from tests.mcp.client import MCP, REPOSITORY
from tests.nursery import Forked, nursery
from tests.ports import free_port
from tests.waiting import wait_until

WRAPPED = str(Path(__file__).parent / "wrapped.py")

Connect = Callable[..., AbstractAsyncContextManager[Client]]
Json = dict[str, Any]


def words(*server: str, budget: float = 20, session: str | None = "test") -> list[str]:
    """Of a wrap before a server; the test's own, unless `"http", URL` is told."""
    target = server[1:] if server[:1] == ("http",) else (sys.executable, WRAPPED, *server)
    named = [] if session is None else ["--session", session]
    return [*named, "--budget", str(budget), "--", *target]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the wrapped server notes of itself."""
    path = tmp_path / "notes"
    path.touch()
    monkeypatch.setenv("WRAPPED_NOTES", str(path))
    return path


@pytest.fixture
def connect(home: Path, notes: Path) -> Connect:
    """Opens a client before a wrap: `async with connect(budget=0.5, mode="legacy") as client`."""

    @asynccontextmanager
    async def connected(
        *server: str,
        budget: float = 20,
        session: str | None = "test",
        mode: Any = "legacy",
        **callbacks: Any,
    ) -> AsyncGenerator[Client]:
        given = words(*server, budget=budget, session=session)
        python, *rest = nursery(*MCP).command("backburner.mcp.wrap", *given)
        parameters = StdioServerParameters(command=python, args=rest, env=dict(os.environ))
        async with Client(parameters, mode=mode, **callbacks) as client:
            yield client

    return connected


def appear(path: Path) -> None:
    """Put a file in place whole: who waits for it reads it at once."""
    new = path.with_suffix(".new")
    new.write_text("it")
    new.rename(path)


async def result_of(home: Path, client: Client, task: str) -> CallToolResult:
    """What `background_output` says of a call that has ended; its own waits end at the budget."""
    async with Backburner.open(home) as backburner:
        await (await backburner.session("test").task(task)).wait(60)
    return await client.call_tool("background_output", {"id": task})


class Wire:
    """A client that writes each message itself, and can be as rude as it likes."""

    def __init__(self, budget: float, *, command_line: bool = False) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        program = ["backburner.mcp.wrap", *words(budget=budget)]
        if command_line:
            server = program[program.index("--") :]
            program = ["backburner.cli", "mcp", "--session", "test"]
            program += ["--budget", f"{budget * 1000:.0f}ms", "--wrap", *server]
        self.process = nursery(*MCP).start(*program, stderr=self._complaints.fileno())
        self._id = 0
        self.notifications: list[Json] = []
        self.request(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "wire", "version": "1"},
        )
        self.notify("notifications/initialized")

    def send(self, method: str, **params: Any) -> int:
        """Send a request; its id."""
        self._id += 1
        self._write({"id": self._id, "method": method, "params": params})
        return self._id

    def notify(self, method: str, **params: Any) -> None:
        self._write({"method": method, "params": params})

    def request(self, method: str, **params: Any) -> Json:
        """The result of a request."""
        return self.answer(self.send(method, **params))["result"]

    def call(self, name: str, **arguments: Any) -> Json:
        return self.request("tools/call", name=name, arguments=arguments)

    def answer(self, number: int) -> Json:
        """The answer to a request; notifications before it are kept."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                return message
            self.notifications.append(message)
        raise AssertionError("the wrap ended")

    def complaints(self) -> str:
        """What came on standard error."""
        self._complaints.seek(0)
        return self._complaints.read().decode()

    def hang_up(self) -> None:
        """End the input and wait for everything to close, as a client does."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait(30)
        self.process.stdout.close()

    def terminate(self) -> None:
        """Ask what the client knows to end, and keep the client's own ends open."""
        self.process.terminate()
        assert self.process.wait(30) == 0

    def kill(self) -> None:
        """Kill what the client knows, and keep its own ends open."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
        self.process.kill()
        self.process.wait(30)
        self._complaints.close()

    def _write(self, message: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


@pytest.fixture
def wire(home: Path, notes: Path) -> Iterator[Callable[..., Wire]]:
    """Opens such a client, with a budget."""
    opened: list[Wire] = []

    def open_one(budget: float = 20, *, command_line: bool = False) -> Wire:
        opened.append(Wire(budget, command_line=command_line))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


class Remote:
    """A server on a port of its own, which can be ended and started again."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._process: Forked | None = None

    def start(self) -> None:
        self._process = nursery(*MCP).start(
            "tests.mcp.wrap.wrapped",
            "--http",
            str(self.port),
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._listens)

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def remote(notes: Path) -> Iterator[Remote]:
    server = Remote()
    server.start()
    yield server
    server.end()
