"""X6: with `--tokens` a server over HTTP lets in who shows a token, and as whom that token says."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from backburner import Backburner
from backburner.runtime.tokens import TokenService
from tests.mcp.client import LEGACY, MODERN, connected, text_of
from tests.mcp.conftest import Serve
from tests.mcp.test_http import HEADERS, HELLO, PLAIN, SERVERS, post
from tests.mcp.wrap.conftest import WRAPPED

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_session_from_outside")]


def served(serve_http: Serve, *, wraps: bool = False) -> str:
    wrap = ("--wrap", "--", sys.executable, WRAPPED) if wraps else ()
    return serve_http(*PLAIN, "--tokens", *wrap)[0]


async def token(
    home: Path, *, owner: str = "local", role: str = "user", session: str | None = None
) -> str:
    async with Backburner.open(home) as bb:
        tokens = TokenService(bb.store, bb.home)
        return (await tokens.create("", owner=owner, role=role, session=session))[1]


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


@asynccontextmanager
async def client_with(url: str, text: str, era: str = MODERN) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers=bearer(text), timeout=60) as http,
        connected(streamable_http_client(url, http_client=http), era) as client,
    ):
        yield client


@SERVERS
async def test_x6_who_shows_no_token_of_this_home_is_refused(
    home: Path, serve_http: Serve, *, wraps: bool
) -> None:
    text = await token(home)
    url = served(serve_http, wraps=wraps)
    assert await post(url) == 401
    for wrong in ("", "Bearer", f"Basic {text}", f"Bearer {text}x", "Bearer \xff"):
        async with httpx2.AsyncClient() as client:
            headers = httpx2.Headers({**HEADERS, "Authorization": wrong}, encoding="latin-1")
            reply = await client.post(url, json=HELLO, headers=headers, timeout=60)
        assert reply.status_code == 401, wrong
        assert reply.headers["WWW-Authenticate"] == "Bearer"
        assert "backburner token create" in reply.json()["remedy"]
    assert await post(url, **bearer(text)) == 200


@SERVERS
@pytest.mark.parametrize("era", [MODERN, LEGACY[-1]])
async def test_x6_each_owner_sees_their_own_tasks(
    home: Path, serve_http: Serve, era: str, *, wraps: bool
) -> None:
    mine, theirs = await token(home, owner="ada"), await token(home, owner="bob")
    url = served(serve_http, wraps=wraps)
    async with client_with(url, mine, era) as client:
        await client.call_tool("background_run", {"command": "true", "title": "of ada"})
        assert "of ada" in text_of(await client.call_tool("background_list", {}))
    async with client_with(url, theirs, era) as client:
        assert "of ada" not in text_of(await client.call_tool("background_list", {}))


async def test_x6_a_token_for_a_session_opens_that_one(home: Path, serve_http: Serve) -> None:
    url = served(serve_http)
    async with client_with(url, await token(home, session="work")) as client:
        await client.call_tool("background_run", {"command": "true", "title": "here"})
    async with Backburner.open(home) as bb:
        assert [task.record.title for task in await bb.session("work").tasks()] == ["here"]


async def test_x6_a_viewer_only_looks(home: Path, serve_http: Serve) -> None:
    url = served(serve_http)
    async with client_with(url, await token(home, role="viewer")) as client:
        refused = await client.call_tool("background_run", {"command": "true"})
        assert refused.is_error
        assert "No background" in text_of(await client.call_tool("background_list", {}))


async def test_x6_a_connection_is_for_the_token_that_opened_it(
    home: Path, serve_http: Serve
) -> None:
    first, second = await token(home), await token(home)
    url = served(serve_http)
    async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as client:
        reply = await client.post(url, json=HELLO, headers=bearer(first))
        connection = {"Mcp-Session-Id": reply.headers["Mcp-Session-Id"]}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        for text, status in ((first, 200), (second, 404)):
            reply = await client.post(url, json=ping, headers=bearer(text) | connection)
            assert reply.status_code == status


async def test_x6_a_token_that_is_taken_back_ends_what_is_open(
    home: Path, serve_http: Serve
) -> None:
    text = await token(home)
    url = served(serve_http)
    async with httpx2.AsyncClient(headers=HEADERS | bearer(text), timeout=60) as client:
        reply = await client.post(url, json=HELLO)
        connection = {"Mcp-Session-Id": reply.headers["Mcp-Session-Id"]}
        async with client.stream("GET", url, headers=connection) as stream:
            assert stream.status_code == 200
            async with Backburner.open(home) as bb:
                tokens = TokenService(bb.store, bb.home)
                await tokens.revoke((await tokens.check(text)).id)
            async with asyncio.timeout(60):
                with pytest.raises(httpx2.RemoteProtocolError):
                    async for _ in stream.aiter_bytes():
                        pass
        assert (await client.post(url, json=HELLO)).status_code == 401
