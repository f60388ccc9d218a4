"""How many servers a wrap over HTTP has: one for each client, up to a limit."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mcp.server.connection import Connection

from backburner import LimitReached
from backburner.mcp.wrap.line import Line
from backburner.mcp.wrap.lines import Lines
from backburner.mcp.wrap.server import Server
from backburner.mcp.wrap.upstream import Upstream
from tests.mcp.wrap.conftest import WRAPPED
from tests.waiting import wait_until_async

Json = dict[str, Any]

HANDSHAKE: Json = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tester", "version": "1"},
}


class StandIn:
    """A line without a server behind it."""

    def __init__(self, now: float) -> None:
        self.is_idle = self.is_resting = False
        self.idle_since = now

    async def rest(self) -> None:
        self.is_resting = True


def asked_by(client: str) -> Any:
    """A request over HTTP of a client that shook hands."""
    connection = Connection.for_loop(cast("Any", None), session_id=client)
    return SimpleNamespace(
        request=SimpleNamespace(headers={}),
        protocol_version="2025-11-25",
        session=SimpleNamespace(_connection=connection),
    )


async def test_x6_who_has_not_asked_for_longest_makes_room_for_the_next() -> None:
    made: list[StandIn] = []

    def opened() -> Line:
        made.append(StandIn(float(-len(made))))
        return cast("Line", made[-1])

    lines = Lines(cast("Any", None), opened, most=2)
    first, second = [await lines.of(asked_by(client)) for client in ("one", "two")]
    assert await lines.of(asked_by("one")) is first
    with pytest.raises(LimitReached, match="2 clients are served"):
        await lines.of(asked_by("three"))
    for line in made:
        line.is_idle = True
    third = await lines.of(asked_by("three"))
    await wait_until_async(lambda: made[1].is_resting)
    assert not made[0].is_resting
    assert await lines.of(asked_by("two")) is second is not third


@pytest.mark.slow
async def test_x6_a_server_that_rests_is_started_by_the_next_request(notes: Path) -> None:
    async def nothing(*_: Any) -> Json:
        return {}

    upstream = Upstream(Server([sys.executable, WRAPPED]), nothing, lambda _, __: True)
    await upstream.request("initialize", HANDSHAKE)
    upstream.remember("initialize", "initialize", HANDSHAKE)
    assert upstream.lives
    await upstream.rest()
    assert not upstream.lives
    assert (await upstream.request("tools/list", None))["tools"]
    assert notes.read_text().count("started") == 2
    await upstream.close()
