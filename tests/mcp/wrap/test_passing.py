"""What passes through a wrap: everything, in each protocol, as the wrapped server says it."""

import asyncio
from typing import Any

import pytest
from mcp import types
from mcp.shared.exceptions import MCPError

from tests.mcp.wrap.conftest import Connect, appear

pytestmark = pytest.mark.slow

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


@ERAS
async def test_x6_tools_resources_and_prompts_pass_through(connect: Connect, mode: str) -> None:
    async with connect(mode=mode) as client:
        assert client.server_info is not None
        assert client.server_info.name == "wrapped"
        assert (client.instructions or "").startswith("Be kind.")
        said = await client.call_tool("echo", {"text": "hello"})
        assert said.content == [types.TextContent(type="text", text="hello")]
        assert said.structured_content == {"result": "hello"}
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"total": 3}
        note = (await client.read_resource("note://one")).contents[0]
        assert isinstance(note, types.TextResourceContents)
        assert note.text == "the note one"
        greeting = (await client.get_prompt("greet", {"name": "Ada"})).messages[0].content
        assert isinstance(greeting, types.TextContent)
        assert greeting.text == "Greet Ada."


@ERAS
async def test_x6_errors_pass_through_as_they_are(connect: Connect, mode: str) -> None:
    async with connect(mode=mode) as client:
        failed = await client.call_tool("fail", {"text": "no such luck"})
        assert failed.is_error
        assert "no such luck" in str(failed.content)
        with pytest.raises(MCPError, match="nothing"):
            await client.read_resource("nothing://there")


@ERAS
async def test_x6_progress_passes_through(connect: Connect, mode: str, tmp_path: Any) -> None:
    flag = tmp_path / "flag"
    seen: list[tuple[float, str | None]] = []

    async def looked(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))
        appear(flag)

    async with connect(mode=mode) as client:
        found = await client.call_tool("until", {"path": str(flag)}, progress_callback=looked)
    assert found.structured_content == {"result": "found it"}
    assert seen[0] == (1.0, "looking")


async def test_x6_sampling_and_elicitation_reach_the_client(connect: Connect) -> None:
    async def sample(_: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        asked = params.messages[0].content
        assert isinstance(asked, types.TextContent)
        answer = types.TextContent(type="text", text=asked.text.upper())
        return types.CreateMessageResult(role="assistant", content=answer, model="m")

    async def elicit(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert params.message == "Which colour?"
        return types.ElicitResult(action="accept", content={"colour": "green"})

    async with connect(sampling_callback=sample, elicitation_callback=elicit) as client:
        assert (await client.call_tool("sample", {"text": "hi"})).structured_content == {
            "result": "HI"
        }
        assert (await client.call_tool("elicit")).structured_content == {"result": "green"}


async def test_x6_log_messages_come_before_the_answer(connect: Connect) -> None:
    seen: list[Any] = []

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        seen.append(params.data)

    async with connect(logging_callback=log) as client:
        for number in range(5):
            await client.call_tool("log", {"text": f"line {number}"})
            assert f"line {number}" in str(seen)


async def test_x6_subscriptions_of_2026_pass_through(connect: Connect) -> None:
    """They are called by the id of the request that opened them, which has to be the client's."""
    async with (
        connect(mode="auto") as client,
        client.listen(resource_subscriptions=["note://one"]) as listening,
    ):
        await client.call_tool("change", {"uri": "note://one"})
        async with asyncio.timeout(30):
            assert "note://one" in str(await anext(aiter(listening)))


@ERAS
async def test_x6_the_task_tools_are_offered_beside_and_names_do_not_clash(
    connect: Connect, mode: str
) -> None:
    async with connect("--clash", mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert len(names) == len(set(names))
        assert {"echo", "background_run", "background_list", "task_background_list"} <= {*names}
        theirs = await client.call_tool("background_list")
        assert theirs.structured_content == {"result": "theirs"}
        ours = await client.call_tool("task_background_list")
        assert ours.structured_content == {"tasks": []}
