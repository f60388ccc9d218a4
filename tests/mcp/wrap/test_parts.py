"""The parts of a wrap by themselves."""

import asyncio
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, PROTOCOL_VERSION_META_KEY

from backburner import UsageError
from backburner.mcp.wrap.catalogue import Catalogue
from backburner.mcp.wrap.meta import meta_of
from backburner.mcp.wrap.outbox import Outbox
from backburner.mcp.wrap.server import Server, headers_of
from backburner.mcp.wrap.upstream import ServerGone, Upstream
from tests.waiting import wait_until_async

Json = dict[str, Any]
OURS: list[Json] = [{"name": "background_run"}, {"name": "background_list"}]


def pages(*lists: list[Json]) -> Any:
    """A server whose list of tools comes in pages."""

    async def ask(params: Json) -> Json:
        number = int(params.get("cursor", 0))
        following = {"nextCursor": str(number + 1)} if number + 1 < len(lists) else {}
        return {"tools": lists[number], **following}

    return ask


async def test_x6_all_pages_are_listed_at_once_and_ours_give_way() -> None:
    catalogue = Catalogue(OURS)
    theirs = [{"name": "one"}], [{"name": "background_run"}, {"name": "task_background_run"}]
    answer = await catalogue.listed({"cursor": "7"}, pages(*theirs))
    names = [tool["name"] for tool in answer["tools"]]
    assert names == [
        "one",
        "background_run",
        "task_background_run",
        "task_task_background_run",
        "background_list",
    ]
    assert "nextCursor" not in answer
    assert catalogue.own("task_task_background_run") == "background_run"
    assert catalogue.own("background_run") is None


async def test_x6_a_server_without_tools_gets_ours() -> None:
    async def ask(_: Json) -> Json:
        raise MCPError(METHOD_NOT_FOUND, "Method not found")

    answer = await Catalogue(OURS).listed({}, ask)
    assert answer == {"tools": OURS}


async def test_x6_a_list_without_an_end_is_cut_off() -> None:
    asked = 0

    async def ask(_: Json) -> Json:
        nonlocal asked
        asked += 1
        return {"tools": [], "nextCursor": "again"}

    await Catalogue(OURS).listed({}, ask)
    assert asked == 200


async def test_d2_a_parked_call_passes_every_output_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"total": {"$ref": "#/$defs/Total"}},
        "required": ["total"],
        "additionalProperties": False,
        "$defs": {"Total": {"type": "integer"}},
    }
    tool = {"name": "sum", "outputSchema": schema}
    listed = await Catalogue([]).listed({}, pages([tool]))
    made = listed["tools"][0]["outputSchema"]
    assert made["type"] == "object"
    parked = {"type": "background", "tool": "sum", "background_id": "bg_1", "message": "later"}
    for good in ({"total": 3}, parked):
        jsonschema.validate(good, made)
    for bad in ({"total": "3"}, {}, {"type": "background"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, made)


async def test_x6_a_tool_gets_its_arguments_in_the_head_where_it_wants_them() -> None:
    schema = {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}
    catalogue = Catalogue([])
    await catalogue.listed({}, pages([{"name": "query", "inputSchema": schema}]))
    assert catalogue.headers("query", {"r": "eu"}) == {"Mcp-Param-Region": "eu"}
    assert catalogue.headers("other", {"r": "eu"}) == catalogue.headers(None, None) == {}


async def test_x6_notifications_keep_their_order_and_a_flood_is_bounded() -> None:
    seen: list[Any] = []
    taken = asyncio.Event()

    async def write(method: str, _: Any) -> None:
        await taken.wait()
        seen.append(method)

    box = Outbox(write)
    running = asyncio.create_task(box.run())
    for number in range(3):
        box.put(str(number), None)
    waiting = asyncio.create_task(box.written())
    box.put("after", None)
    assert not waiting.done()
    taken.set()
    await waiting
    assert seen[:3] == ["0", "1", "2"]
    for number in range(20_000):
        box.put(str(number), None)
    await box.written()  # does not wait where it is full
    await wait_until_async(lambda: len(seen) > 10_000)
    running.cancel()
    assert len(seen) <= 10_010


@pytest.mark.slow
async def test_x6_a_server_that_dies_at_once_is_started_more_and_more_seldom(
    tmp_path: Path,
) -> None:
    async def nothing(*_: Any) -> Json:
        return {}

    starts = tmp_path / "starts"
    server = Server(["/bin/sh", "-c", f"echo started >> {starts}"])
    upstream = Upstream(server, nothing, lambda _, __: True)
    began = asyncio.get_running_loop().time()
    for _ in range(4):
        with pytest.raises(ServerGone, match="the wrapped server"):
            await upstream.request("tools/list", None)
        await upstream.over()
    assert asyncio.get_running_loop().time() - began >= 1.5  # 0, 0, a half and a whole second
    assert starts.read_text().count("started") == 4
    await upstream.close()
    with pytest.raises(ServerGone, match="is let go"):
        await upstream.request("tools/list", None)


def test_x6_the_head_of_a_request_says_what_each_protocol_wants() -> None:
    modern = {"name": "é", "_meta": {PROTOCOL_VERSION_META_KEY: "2026-07-28"}}
    assert headers_of("tools/call", modern, "2025-06-18") == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?w6k=?=",
    }
    assert headers_of("tools/call", {}, "2025-06-18") == {"mcp-protocol-version": "2025-06-18"}
    assert headers_of("initialize", {}, None) == {}


@pytest.mark.parametrize("meta", [None, 7, "text", []])
def test_x6_what_is_no_meta_is_none(meta: Any) -> None:
    assert meta_of({"_meta": meta}) == {}


def test_x6_a_server_is_named_without_its_secrets() -> None:
    assert str(Server(["/opt/bin/serve", "--key", "s3cret"])) == "serve"
    assert str(Server("https://ada:s3cret@mcp.example.com/mcp?key=s3cret")) == "mcp.example.com/mcp"


@pytest.mark.parametrize("target", ["", [], ["https://mcp.example.com", "more"]])
def test_x6_what_is_no_server_is_refused(target: Any) -> None:
    with pytest.raises(UsageError):
        Server(target)
