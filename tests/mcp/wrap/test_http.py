"""A wrap before a server that is reached over HTTP."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.wrap.conftest import WRAPPED, Connect
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


class Remote:
    """A server on a port of its own, which can be ended and started again."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, WRAPPED, "--http", str(self.port)], stderr=subprocess.DEVNULL
        )
        wait_until(self._listens)

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
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


@ERAS
async def test_x6_a_url_is_wrapped_as_a_command_is(
    connect: Connect, remote: Remote, mode: str, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    async with connect("http", remote.url, mode=mode, budget=5) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"total": 3}
        parked: Any = (await client.call_tool("until", {"path": str(flag)})).structured_content
        flag.write_text("it")
        read: Any = (
            await client.call_tool(
                "background_output", {"id": parked["background_id"], "wait_seconds": 30}
            )
        ).structured_content
        assert read["result"] == {"result": "found it"}


@ERAS
async def test_x6_a_remote_server_that_dies_is_found_again(
    connect: Connect, remote: Remote, mode: str
) -> None:
    async with connect("http", remote.url, mode=mode) as client:
        await client.call_tool("echo", {"text": "one"})
        remote.end()
        gone = await client.call_tool("echo", {"text": "two"})
        assert gone.is_error
        assert "the wrapped server" in str(gone.content)
        remote.start()
        await _until_it_works(client)


async def _until_it_works(client: Any) -> None:
    """The first call may still meet the session of the dead one."""
    for _ in range(3):
        answer = await client.call_tool("echo", {"text": "three"})
        if not answer.is_error:
            assert answer.structured_content == {"result": "three"}
            return
        assert "the wrapped server" in str(answer.content)
    pytest.fail("it was not found again")
