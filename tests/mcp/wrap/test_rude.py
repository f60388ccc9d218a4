"""X6: servers that break their promises harm their own calls, and nothing else."""

import asyncio
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from backburner.mcp.results import passed_on
from backburner.mcp.wrap.asked import Asked
from backburner.mcp.wrap.asking import ended
from backburner.mcp.wrap.catalogue import Catalogue
from backburner.mcp.wrap.outbox import Outbox
from backburner.mcp.wrap.server import Server
from backburner.mcp.wrap.upstream import ServerGone, Upstream
from tests.mcp.client import MODERN, anything
from tests.mcp.wrap.conftest import Connect
from tests.waiting import wait_until_async

RUDE = str(Path(__file__).parent / "rude.py")
Json = dict[str, Any]


async def nothing(*_: Any) -> Json:
    return {}


async def introduced(kind: str) -> Upstream:
    """A rude server that a client has shaken hands with, and subscribed to something."""
    upstream = Upstream(Server([sys.executable, RUDE, kind]), nothing, lambda _, __: True)
    hello: Json = {"protocolVersion": "2025-06-18"}
    for method, params in (("initialize", hello), ("resources/subscribe", {"uri": "note://a"})):
        await upstream.request(method, params)
        upstream.remember(method, method, params)
    return upstream


async def whoever(upstream: Upstream) -> int:
    answer = await upstream.request("tools/call", {"name": "babble"})
    return int(answer["content"][0]["text"])


@pytest.mark.slow
async def test_x6_a_server_that_prints_what_is_no_text_is_heard_all_the_same(
    connect: Connect,
) -> None:
    async with connect("http", sys.executable, RUDE, "babbles") as client:
        for _ in range(2):
            result = await client.call_tool("babble", {})
            assert not result.is_error


@pytest.mark.slow
async def test_x6_what_a_new_server_does_not_take_again_is_done_without(notes: Path) -> None:
    upstream = await introduced("forgets")
    os.kill(before := await whoever(upstream), 9)
    await upstream.over()
    assert await whoever(upstream) != before
    await upstream.close()


@pytest.mark.slow
async def test_x2_a_new_server_that_lets_nobody_in_is_ended(notes: Path) -> None:
    upstream = await introduced("refuses")
    os.kill(await whoever(upstream), 9)
    await upstream.over()
    with pytest.raises(ServerGone, match="does not start: not again"):
        await whoever(upstream)
    await asyncio.wait_for(upstream.over(), 30)
    assert not upstream.lives
    await upstream.close()


@pytest.mark.slow
async def test_x6_who_comes_while_a_server_is_let_go_gets_another(notes: Path) -> None:
    upstream = await introduced("stays")
    before = await whoever(upstream)
    resting = asyncio.create_task(upstream.rest())
    await asyncio.sleep(0)  # noqa: TID251 - it has begun
    assert await whoever(upstream) != before
    await resting
    await upstream.close()


@pytest.mark.slow
async def test_x6_what_is_on_record_is_read_while_the_server_cannot_be_started(
    connect: Connect,
) -> None:
    async with connect("http", "/nowhere/server", mode=MODERN) as client:
        failed = await anything(client.session, "tools/call", {"name": "babble"})
        assert failed["isError"]
        read = await anything(client.session, "tools/call", {"name": "background_list"})
        assert not read["isError"], read


async def test_x6_an_entry_that_is_no_tool_hides_none_of_the_others() -> None:
    good = {"name": "good", "inputSchema": {"type": "object"}}

    async def ask(_: Json) -> Json:
        return {"tools": [None, 7, {}, {"name": 5}, good]}

    async def ask_in_vain(_: Json) -> Json:
        return {"tools": 7}

    catalogue = Catalogue([{"name": "ours"}])
    names = [tool["name"] for tool in (await catalogue.listed({}, ask))["tools"]]
    assert names == ["good", "ours"]
    assert (await catalogue.listed({}, ask_in_vain))["tools"] == [{"name": "ours"}]


def test_x6_an_answer_that_is_no_result_is_kept_as_it_is() -> None:
    answer: Json = {"content": 5, "structuredContent": [1], "_meta": 7}
    assert passed_on(answer).result == [1]
    assert passed_on({"content": [None, {"type": "text"}]}).success


async def test_x6_a_notification_that_cannot_be_passed_on_stops_no_other() -> None:
    seen: list[str] = []

    async def write(method: str, _: Any) -> None:
        if method == "bad":
            raise TypeError(method)
        seen.append(method)

    box = Outbox(write)
    running = asyncio.create_task(box.run())
    for method in ("bad", "good"):
        box.put(method, None)
    await asyncio.wait_for(box.written(), 30)
    assert seen == ["good"]
    running.cancel()


@pytest.mark.slow
async def test_c3_a_stop_does_not_wait_for_a_server_that_takes_no_cancellation() -> None:
    asked: list[str] = []

    async def ask(method: str, _: Json) -> Json:
        asked.append(method)
        await asyncio.Event().wait()
        raise AssertionError

    task: Json = {"resultType": "task", "taskId": "1", "status": "working", "pollIntervalMs": 1}
    following = asyncio.create_task(ended(task, {}, ask))
    await wait_until_async(lambda: asked == ["tasks/get"])
    following.cancel()
    await asyncio.wait({following}, timeout=30)
    assert following.cancelled()
    assert asked == ["tasks/get", "tasks/cancel"]


async def test_x3_progress_that_nobody_takes_is_bounded() -> None:
    taken = asyncio.Event()
    told: list[float] = []

    async def progress(current: float, *_: Any) -> None:
        await taken.wait()
        told.append(current)

    back = SimpleNamespace(progress=progress)
    context = SimpleNamespace(session=SimpleNamespace(_request_outbound=back))
    asked = Asked(cast("Any", context))
    async with asyncio.TaskGroup() as group:
        for number in range(1_000):
            group.create_task(asked.progress(number, None, None))
        await asyncio.sleep(0)  # noqa: TID251 - all of them have begun
        taken.set()
    assert told == [*map(float, range(100))]
