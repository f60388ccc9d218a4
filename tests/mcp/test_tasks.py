"""X6: the Tasks extension of 2026-07-28, served from the record."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from mcp.client.extension import advertise
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

from backburner import Backburner
from backburner.mcp.reception import Reception
from backburner.mcp.server import opened
from tests.mcp.client import (
    MODERN,
    Changed,
    TasksExtension,
    about,
    anything,
    as_task,
    connected,
    program,
    text_of,
    until,
)
from tests.mcp.conftest import Serve
from tests.mcp.fixture_tools import ONLY_AS_TASKS, REGISTRY
from tests.waiting import wait_until_async

pytestmark = pytest.mark.usefixtures("no_session_from_outside")

TASKS = "io.modelcontextprotocol/tasks"
FIXTURE = ("-m", "tests.mcp.fixture_server")


async def nobody(*_: Any) -> ElicitResult:
    """A client that can show forms; the tests answer by themselves."""
    raise AssertionError("it is not asked this way")


@asynccontextmanager
async def served(home: Path) -> AsyncGenerator[Reception]:
    async with (
        Backburner.open(home) as bb,
        opened(bb, None, REGISTRY, budget_s=0.05, only_as_tasks=ONLY_AS_TASKS) as server,
    ):
        yield server


async def refusal(work: Any) -> int:
    with pytest.raises(MCPError) as refused:
        await work
    return refused.value.error.code


async def test_x6_a_call_past_the_budget_becomes_a_task_and_gives_its_result(
    home: Path, tmp_path: Path
) -> None:
    async with served(home) as server, connected(server, tasks=True) as client:
        created = await as_task(client, "hold", {"path": str(tmp_path / "go")})
        more = cast("dict[str, Any]", created.model_extra)
        assert created.status == "working"
        assert more["ttlMs"] >= 30 * 86400 * 1000
        assert more["pollIntervalMs"] >= 1000
        assert more["createdAt"] <= more["lastUpdatedAt"]
        assert not {"result", "error", "inputRequests", "requestState"} & {*more}
        seen = await about(client.session, "tasks/get", created.task_id)
        assert (seen["status"], seen["resultType"]) == ("working", "complete")
        (tmp_path / "go").touch()
        ended = await until(client.session, created.task_id, "completed")
        assert text_of(ended["result"]) == "held"
        assert ended["result"]["isError"] is False


async def test_x6_a_client_resolves_a_task_by_itself(home: Path) -> None:
    async with served(home) as server, connected(server, tasks=True) as client:
        result = await client.call_tool("slow_compute", {"seconds": 0.2, "label": "that"})
        assert text_of(result) == "computed that in 0.2 s"


async def test_x6_an_error_of_a_tool_is_completed_and_one_of_the_protocol_failed(
    home: Path,
) -> None:
    async with served(home) as server, connected(server, tasks=True) as client:
        job = await as_task(client, "failing_job", {})
        broken = await as_task(client, "protocol_error_job", {})
        ended = await until(client.session, job.task_id, "completed")
        assert ended["result"]["isError"] is True
        failed = await until(client.session, broken.task_id, "failed")
        assert failed["error"] == {"code": -32603, "message": "the machinery broke"}
        assert "result" not in failed


@pytest.mark.slow
async def test_x6_a_shell_job_is_a_task_too(home: Path, tmp_path: Path) -> None:
    async with served(home) as server, connected(server, tasks=True) as client:
        command = f"echo building; until [ -e {tmp_path}/go ]; do sleep 0.05; done; exit 3"
        started = await client.call_tool("background_run", {"command": command, "title": "build"})
        task = cast("dict[str, Any]", started.structured_content)["id"]
        waited = {"id": task, "wait_seconds": 60}
        created = await as_task(client, "background_output", waited)
        assert created.task_id == task
        (tmp_path / "go").touch()
        ended = await until(client.session, task, "completed")
        assert ended["result"]["isError"] is True
        assert f"build ({task}) failed: exit code 3" in text_of(ended["result"])
        assert "building" in text_of(ended["result"])


async def test_x6_cancel_is_acknowledged_and_ends_the_work(home: Path) -> None:
    async with served(home) as server, connected(server, tasks=True) as client:
        created = await as_task(client, "slow_compute", {"seconds": 600})
        for _ in range(2):  # the second time it has ended, and stays as it is
            done = await about(client.session, "tasks/cancel", created.task_id)
            assert done["resultType"] == "complete"
            assert "status" not in done
            await until(client.session, created.task_id, "cancelled")


async def test_x6_each_request_declares_the_extension_or_gets_no_task(home: Path) -> None:
    async with served(home) as server:
        async with connected(server, tasks=True) as client:
            task = (await as_task(client, "slow_compute", {"seconds": 600})).task_id
        async with connected(server) as plain:
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                asked = about(plain.session, method, task, {})
                assert await refusal(asked) == -32021
            with pytest.raises(MCPError) as refused:
                await plain.call_tool("failing_job", {})
            required: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            assert (refused.value.error.code, refused.value.error.data) == (-32021, required)
            parked = await plain.call_tool("slow_compute", {"seconds": 600})
            other = cast("dict[str, Any]", parked.structured_content)["background_id"]
            for each in (task, other):
                await plain.call_tool("background_stop", {"id": each})


async def test_x6_an_earlier_protocol_has_no_tasks_whatever_it_advertises(home: Path) -> None:
    advertised = [advertise(TASKS)]
    async with (
        served(home) as server,
        connected(server, "2025-11-25", extensions=advertised) as client,
    ):
        assert client.server_capabilities.extensions is None
        parked = await client.call_tool("slow_compute", {"seconds": 600})
        task = cast("dict[str, Any]", parked.structured_content)["background_id"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel", "tasks/list", "tasks/result"):
            assert await refusal(anything(client.session, method, {"taskId": task})) == -32601
        failed = await client.call_tool("failing_job", {})
        assert cast("dict[str, Any]", failed.structured_content)["type"] == "background"
        await client.call_tool("background_stop", {"id": task})


async def test_x6_unknown_and_removed_things_are_refused_with_their_codes(home: Path) -> None:
    async with served(home) as server, connected(server, tasks=True) as client:
        discovered = client.server_capabilities.extensions
        assert discovered is None or TASKS in discovered
        task = (await as_task(client, "slow_compute", {"seconds": 600})).task_id
        for unknown in ("bg_nothere", task[:-1], "", "../..", "x" * 10_000, "\0"):
            for method in ("tasks/get", "tasks/cancel"):
                assert await refusal(about(client.session, method, unknown)) == -32602
            assert await refusal(about(client.session, "tasks/update", unknown, {})) == -32602
        for removed in ("tasks/list", "tasks/result"):
            assert await refusal(anything(client.session, removed, {"taskId": task})) == -32601
        assert await refusal(anything(client.session, "tasks/get", {"taskId": 7})) == -32602
        await about(client.session, "tasks/cancel", task)


async def test_x6_a_task_belongs_to_the_session_of_its_client(home: Path) -> None:
    async with served(home) as server, connected(server, tasks=True, name="one") as client:
        task = (await as_task(client, "slow_compute", {"seconds": 600})).task_id
        async with connected(server, tasks=True, name="two") as other:
            for method in ("tasks/get", "tasks/cancel"):
                assert await refusal(about(other.session, method, task)) == -32602
        assert (await about(client.session, "tasks/get", task))["status"] == "working"
        await about(client.session, "tasks/cancel", task)


# Input


async def test_x6_questions_are_input_requests_with_keys_of_their_own(home: Path) -> None:
    async with (
        served(home) as server,
        connected(server, tasks=True, elicitation_callback=nobody) as client,
    ):
        task = (await as_task(client, "multi_input", {})).task_id

        async def both() -> dict[str, Any] | None:
            seen = await about(client.session, "tasks/get", task)
            return seen["inputRequests"] if len(seen.get("inputRequests", ())) == 2 else None

        requests = await wait_until_async(both)
        assert {each["method"] for each in requests.values()} == {"elicitation/create"}
        first, second = requests
        names = {"Who is the first?": "Ada", "Who is the second?": "Bob"}
        for key, left in ((first, {second}), (second, None)):
            name = names[requests[key]["params"]["message"]]
            given = {key: {"action": "accept", "content": {"name": name}}, "unknown": 7}
            done = await about(client.session, "tasks/update", task, given)
            assert done["resultType"] == "complete"
            if left is not None:
                seen = await about(client.session, "tasks/get", task)
                assert (seen["status"], {*seen["inputRequests"]}) == ("input_required", left)
        ended = await until(client.session, task, "completed")
        assert ended["result"]["structuredContent"] == {"first": "Ada", "second": "Bob"}


async def test_x6_an_answer_that_does_not_fit_is_refused_and_changes_nothing(home: Path) -> None:
    async with (
        served(home) as server,
        connected(server, tasks=True, elicitation_callback=nobody) as client,
    ):
        task = (await as_task(client, "confirm_delete", {"filename": "a.txt"})).task_id
        asked = await until(client.session, task, "input_required")
        (key,) = asked["inputRequests"]
        refused: tuple[Any, ...] = (
            7,
            {},
            {"action": "explode"},
            {"action": "accept"},
            {"action": "accept", "content": []},
            {"action": "accept", "content": {"confirm": "perhaps"}},
        )
        for wrong in refused:
            given = about(client.session, "tasks/update", task, {key: wrong})
            assert await refusal(given) == -32602
        assert (await about(client.session, "tasks/get", task))["status"] == "input_required"
        fine = {key: {"action": "accept", "content": {"confirm": False}}}
        await about(client.session, "tasks/update", task, fine)
        ended = await until(client.session, task, "completed")
        assert text_of(ended["result"]) == "kept a.txt"


@pytest.mark.parametrize(
    ("response", "said"),
    [
        ({"action": "accept", "content": {"answer": "go on"}}, "you said go on"),
        ({"action": "decline"}, "you said (declined)"),
    ],
)
async def test_x6_a_question_for_any_text_has_one_field(
    home: Path, response: dict[str, Any], said: str
) -> None:
    async with (
        served(home) as server,
        connected(server, tasks=True, elicitation_callback=nobody) as client,
    ):
        task = (await as_task(client, "ask_plainly", {})).task_id
        asked = await until(client.session, task, "input_required")
        ((key, request),) = asked["inputRequests"].items()
        assert [*request["params"]["requestedSchema"]["properties"]] == ["answer"]
        await about(client.session, "tasks/update", task, {key: response})
        ended = await until(client.session, task, "completed")
        assert text_of(ended["result"]) == said


async def test_x6_a_client_without_forms_is_told_what_is_asked(home: Path) -> None:
    async with served(home) as server, connected(server, tasks=True) as client:
        task = (await as_task(client, "ask_plainly", {})).task_id

        async def asks() -> bool:
            seen = await about(client.session, "tasks/get", task)
            assert seen["status"] == "working"
            assert "inputRequests" not in seen
            return "asks: What now?" in seen.get("statusMessage", "")

        await wait_until_async(asks)
        await client.call_tool("background_send", {"id": task, "text": "this"})
        ended = await until(client.session, task, "completed")
        assert text_of(ended["result"]) == "you said this"


# Subscriptions


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_x6_a_subscription_tells_of_changes(
    serve_http: Serve, tmp_path: Path, transport: str
) -> None:
    heard: list[Changed] = []

    async def hear(changed: Changed) -> None:
        heard.append(changed)

    to = program(*FIXTURE) if transport == "stdio" else serve_http(*FIXTURE, "--http", "0")[0]
    async with connected(to, extensions=[TasksExtension(hear)]) as client:
        task = (await as_task(client, "hold", {"path": str(tmp_path / "go")})).task_id
        wanted = {"notifications": {"taskIds": [task, "bg_notmine"]}}
        listening = asyncio.create_task(anything(client.session, "subscriptions/listen", wanted))
        await wait_until_async(lambda: heard and heard[-1].status == "working")
        (tmp_path / "go").touch()
        await wait_until_async(lambda: heard[-1].status == "completed")
        assert {each.task_id for each in heard} == {task}
        last = cast("dict[str, Any]", heard[-1].model_extra)
        assert last["result"]["content"][0]["text"] == "held"
        await asyncio.wait_for(listening, 20)  # its last task has ended, and so does the stream


async def test_x6_a_subscription_without_the_extension_is_refused(home: Path) -> None:
    async with served(home) as server, connected(server) as client:
        for given, code in ((["bg_x"], -32021), ("bg_x", -32602), (["x"] * 1000, -32602)):
            asked = anything(
                client.session, "subscriptions/listen", {"notifications": {"taskIds": given}}
            )
            assert await refusal(asked) == code


# HTTP


@pytest.mark.slow
async def test_x6_headers_have_to_name_the_task(serve_http: Serve) -> None:
    url, _ = serve_http(*FIXTURE, "--http", "0")
    async with connected(url, tasks=True) as client, httpx2.AsyncClient(timeout=60) as http:
        task = (await as_task(client, "slow_compute", {"seconds": 600})).task_id

        async def get(**headers: str) -> tuple[int, dict[str, Any]]:
            meta: dict[str, Any] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
            }
            given = {
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": MODERN,
                "Mcp-Method": "tasks/get",
                **headers,
            }
            body: dict[str, Any] = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tasks/get",
                "params": {"taskId": task, "_meta": meta},
            }
            reply = await http.post(url, json=body, headers=given)
            said: dict[str, Any] = reply.json() if reply.status_code in (200, 400) else {}
            return reply.status_code, said

        status, right = await get(**{"Mcp-Name": task})
        assert (status, right["result"]["status"]) == (200, "working")
        for headers in ({}, {"Mcp-Name": "bg_other"}, {"Mcp-Name": "=?base64?!?="}):
            status, wrong = await get(**headers)
            assert (status, wrong["error"]["code"]) == (400, -32020)
        status, _ = await get(**{"Mcp-Name": task, "Host": "evil.example.com"})
        assert status == 421
        await about(client.session, "tasks/cancel", task)
