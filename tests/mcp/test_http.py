"""X6: what is served over HTTP is for this machine, and takes only what it can hold."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from backburner import UsageError
from backburner.mcp.access import check_bound
from backburner.model.address import LOOPBACK
from tests.mcp.client import connected
from tests.mcp.conftest import Serve
from tests.mcp.wrap.conftest import WRAPPED

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_session_from_outside")]

PLAIN = ("-m", "backburner.cli", "mcp", "--http", "0", "--json")
SERVERS = pytest.mark.parametrize("wraps", [False, True], ids=["own", "wrap"])

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tester", "version": "1"},
    },
}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


def served(serve_http: Serve, *, wraps: bool) -> str:
    return serve_http(*PLAIN, *(("--wrap", "--", sys.executable, WRAPPED) if wraps else ()))[0]


async def post(url: str, body: Any = HELLO, **headers: str) -> int:
    async with httpx2.AsyncClient() as client:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply = await client.post(url, content=content, headers=HEADERS | headers, timeout=60)
        return reply.status_code


@SERVERS
async def test_x6_other_hosts_and_pages_of_them_are_refused(
    home: Path, serve_http: Serve, *, wraps: bool
) -> None:
    url = served(serve_http, wraps=wraps)
    assert url.startswith("http://127.0.0.1:")
    assert await post(url) == 200
    assert await post(url, Host="evil.example.com") == 421
    assert await post(url, Origin="https://evil.example.com") == 403
    assert await post(url, Origin="http://localhost:3000") == 200


@SERVERS
async def test_x6_what_is_too_long_is_refused_before_it_is_read(
    home: Path, serve_http: Serve, *, wraps: bool
) -> None:
    url = served(serve_http, wraps=wraps)
    assert await post(url, b" " * (5 * 1024 * 1024)) == 413
    assert await post(url, b"[" * 100_000) == 400
    async with connected(url, "2025-11-25") as client:
        assert await client.list_tools()


async def test_x6_another_address_of_this_machine_is_served_by_its_name(
    home: Path, serve_http: Serve
) -> None:
    url = serve_http(*PLAIN, "--host", "127.0.0.2")[0]
    assert url.startswith("http://127.0.0.2:")
    assert await post(url) == 200
    assert await post(url, Host="127.0.0.3:1") == 421
    assert await post(url, Origin="http://127.0.0.3:1") == 403


async def test_x6_nobody_else_can_reach_it(home: Path, serve_http: Serve) -> None:
    port = int(served(serve_http, wraps=False).rsplit(":", 1)[1].split("/")[0])
    own = socket.gethostbyname(socket.gethostname())
    if not own.startswith("127."):
        with socket.socket() as probe:
            assert probe.connect_ex((own, port)) != 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com", "", "127.1"])
def test_x6_every_address_that_others_could_reach_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="not encrypted"):
        check_bound(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_x6_every_address_of_this_machine_alone_is_taken(host: str) -> None:
    assert check_bound(host) == (LOOPBACK if host == "localhost" else host)
