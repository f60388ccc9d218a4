"""X6: calls of a wrapped server as durable tasks, over pipes and over HTTP.

The wrapped server has never heard of tasks.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

from backburner import Backburner
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
from tests.mcp.wrap.conftest import WRAPPED, Remote, appear
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("notes")]

Front = Callable[..., Any]
WRAP = ("-m", "backburner.cli", "mcp", "--session", "test", "--budget")
OVER_HTTP = (*WRAP, "300ms", "--http", "0", "--json", "--wrap", "--")
BEFORE = (sys.executable, WRAPPED)


@pytest.fixture(params=["stdio", "http"])
def front(request: pytest.FixtureRequest, serve_http: Serve) -> Front:
    """What a client connects to, over pipes or HTTP. What is to be parked waits for a file."""

    def before(budget: str = "300ms") -> Any:
        if request.param == "stdio":
            return program(*WRAP, budget, "--wrap", "--", *BEFORE)
        return serve_http(*WRAP, budget, "--http", "0", "--json", "--wrap", "--", *BEFORE)[0]

    return before


async def nobody(*_: Any) -> ElicitResult:
    """A client that can show forms; the tests answer by themselves."""
    raise AssertionError("it is not asked this way")


async def test_x6_a_wrapped_call_becomes_a_task_and_gives_what_the_server_gave(
    front: Front, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    async with connected(front(), tasks=True) as client:
        discovered = await anything(client.session, "server/discover")
        assert "io.modelcontextprotocol/tasks" in discovered["capabilities"]["extensions"]
        found = await as_task(client, "until", {"path": str(flag)})
        shown = await as_task(client, "show", {"path": str(flag)})
        looking = await about(client.session, "tasks/get", found.task_id)
        assert looking["status"] == "working"
        appear(flag)
        result = (await until(client.session, found.task_id, "completed"))["result"]
        assert result["structuredContent"] == {"result": "found it"}
        result = (await until(client.session, shown.task_id, "completed"))["result"]
        assert [block["type"] for block in result["content"]] == ["image", "audio"]


async def test_x6_an_error_of_the_protocol_is_a_failed_task(front: Front, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    async with connected(front(), tasks=True) as client:
        task = (await as_task(client, "refuse", {"path": str(flag)})).task_id
        flag.touch()
        error = (await until(client.session, task, "failed"))["error"]
        assert error == {"code": -32099, "message": "not like this", "data": {"path": str(flag)}}
    async with connected(front(budget="60s"), tasks=True) as client:
        with pytest.raises(MCPError, match="not like this"):
            await client.session.call_tool("refuse", {"path": str(flag)})


async def test_x6_a_question_of_a_task_is_answered_and_a_task_is_cancelled(
    front: Front, tmp_path: Path, notes: Path
) -> None:
    flag = tmp_path / "flag"
    async with connected(front(), tasks=True, elicitation_callback=nobody) as client:
        task = (await as_task(client, "ask_until", {"path": str(flag)})).task_id
        flag.touch()
        asked = (await until(client.session, task, "input_required"))["inputRequests"]
        [(key, request)] = asked.items()
        assert request["params"]["message"] == "Which colour?"
        accepted = {"action": "accept", "content": {"colour": "red"}}
        await about(client.session, "tasks/update", task, {key: accepted})
        ended = await until(client.session, task, "completed")
        assert text_of(ended["result"]) == "red state"
        never = f"{tmp_path}/never"
        task = (await as_task(client, "until", {"path": never})).task_id
        await about(client.session, "tasks/cancel", task)
        await until(client.session, task, "cancelled")
        await wait_until_async(lambda: f"cancelled {never}" in notes.read_text())


async def test_x6_one_subscription_is_to_the_server_and_to_tasks(
    front: Front, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    heard: list[Changed] = []

    async def changed(params: Changed) -> None:
        heard.append(params)

    extensions = [TasksExtension(changed)]
    async with connected(front(), extensions=extensions) as client:
        task = (await as_task(client, "until", {"path": str(flag)})).task_id
        wanted = {"taskIds": [task, "bg_nobody"], "resourceSubscriptions": ["note://one"]}
        listening = asyncio.create_task(
            anything(client.session, "subscriptions/listen", {"notifications": wanted})
        )
        await wait_until_async(lambda: heard and heard[0].status == "working")
        appear(flag)
        await wait_until_async(lambda: heard[-1].status == "completed")
        listening.cancel()


async def test_x6_without_the_extension_a_parked_call_is_a_plain_result(
    front: Front, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    to = front()
    for era in (MODERN, "2025-11-25"):
        async with connected(to, era) as client:
            parked: Any = (await client.call_tool("until", {"path": str(flag)})).structured_content
            assert parked["type"] == "background"
            if era == MODERN:
                with pytest.raises(MCPError) as refused:
                    await about(client.session, "tasks/get", parked["background_id"])
                assert refused.value.error.code == -32021
    flag.touch()


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
async def test_x6_a_task_that_is_nowhere_is_not_found(front: Front, method: str) -> None:
    async with connected(front(), tasks=True) as client:
        with pytest.raises(MCPError) as refused:
            await about(client.session, method, "bg_0000000000000000")
        assert refused.value.error.code == -32602


async def test_x6_a_url_is_wrapped_over_http_in_both_eras(
    home: Path, serve_http: Serve, remote: Remote, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    url, _ = serve_http(*OVER_HTTP, remote.url)
    async with connected(url, tasks=True) as modern, connected(url, "2025-06-18") as legacy:
        assert "the note one" in str(await legacy.read_resource("note://one"))
        task = (await as_task(modern, "until", {"path": str(flag)})).task_id
        appear(flag)
        ended = await until(modern.session, task, "completed")
        assert text_of(ended["result"]) == "found it"


async def test_x6_clients_over_http_have_servers_of_their_own(
    home: Path, serve_http: Serve, tmp_path: Path, notes: Path
) -> None:
    flag = tmp_path / "flag"
    url, _ = serve_http(*OVER_HTTP, *BEFORE)
    async with connected(url, "2025-11-25") as one, connected(url, "2025-11-25") as two:
        assert await two.list_tools()
        _, second = [line.split()[1] for line in notes.read_text().splitlines()]
        parked: Any = (await one.call_tool("until", {"path": str(flag)})).structured_content
    # Both are gone, and what was parked goes on; the other server ends with its client.
    await wait_until_async(lambda: not Path(f"/proc/{second}").exists())
    appear(flag)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("test").task(parked["background_id"])).wait(30)
        assert task.result == {"result": "found it"}


@pytest.mark.parametrize("leave", [signal.SIGTERM, signal.SIGKILL])
async def test_x2_a_wrap_over_http_is_killed_and_the_next_one_has_its_tasks(
    home: Path, serve_http: Serve, tmp_path: Path, leave: signal.Signals
) -> None:
    flag = tmp_path / "flag"
    url, process = serve_http(*OVER_HTTP, *BEFORE)
    async with connected(url, tasks=True) as client:
        task = (await as_task(client, "until", {"path": str(flag)})).task_id
        os.kill(process.pid, leave)
        process.wait(20)
    url, _ = serve_http(*OVER_HTTP, *BEFORE)
    async with connected(url, tasks=True) as again:
        assert (await about(again.session, "tasks/get", task))["status"] == "working"
        appear(flag)
        ended = await until(again.session, task, "completed")
        assert text_of(ended["result"]) == "found it"


async def test_e11_the_worker_of_a_wrap_is_killed_and_its_tasks_fail(
    home: Path, serve_http: Serve, tmp_path: Path
) -> None:
    url, process = serve_http(*OVER_HTTP, *BEFORE)
    [worker] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    async with connected(url, tasks=True) as client:
        task = (await as_task(client, "until", {"path": f"{tmp_path}/never"})).task_id
        os.kill(int(worker), signal.SIGKILL)
        process.wait(20)
    url, _ = serve_http(*OVER_HTTP, *BEFORE)
    async with connected(url, tasks=True) as again:
        failed = await until(again.session, task, "failed")
        assert failed["error"]["code"] == -32603
        assert (await again.call_tool("add", {"a": 1, "b": 2})).structured_content == {"total": 3}
