"""X2, X6: a server that is killed in the middle; the next one has the tasks."""

import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from mcp import StdioServerParameters

from backburner import Backburner
from backburner.mcp import session_name
from tests.mcp.client import about, as_task, connected, text_of, until
from tests.mcp.conftest import Serve
from tests.mcp.test_tasks import FIXTURE, nobody

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_session_from_outside")]


@pytest.mark.parametrize("work", ["tool", "shell"])
async def test_x2_a_server_that_is_killed_loses_no_task(
    home: Path, serve_http: Serve, work: str, tmp_path: Path
) -> None:
    url, server = serve_http(*FIXTURE, "--http", "0")
    async with connected(url, tasks=True) as client:
        if work == "tool":
            task = (await as_task(client, "slow_compute", {"seconds": 2, "label": "it"})).task_id
        else:
            command = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo computed"
            started = await client.call_tool("background_run", {"command": command})
            task = cast("dict[str, Any]", started.structured_content)["id"]
        os.kill(server.pid, signal.SIGKILL)
        server.wait(20)
    (tmp_path / "go").touch()
    url, _ = serve_http(*FIXTURE, "--http", "0")
    async with connected(url, tasks=True) as again:
        ended = await until(again.session, task, "completed")
        assert "computed" in text_of(ended["result"])
        assert ended["result"]["isError"] is False


async def test_x2_a_server_on_stdio_is_killed_and_its_job_goes_on(
    home: Path, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    line = f'echo $$ >{pid}; exec "$0" -m backburner.cli mcp'
    agent = StdioServerParameters(
        command="sh", args=["-c", line, sys.executable], env=dict(os.environ), cwd=tmp_path
    )
    async with connected(agent, tasks=True) as client:
        command = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo built"
        started = await client.call_tool("background_run", {"command": command})
        task = cast("dict[str, Any]", started.structured_content)["id"]
        os.kill(int(pid.read_text()), signal.SIGKILL)
    async with connected(agent, tasks=True) as again:
        assert (await about(again.session, "tasks/get", task))["status"] == "working"
        (tmp_path / "go").touch()
        ended = await until(again.session, task, "completed")
        assert "built" in text_of(ended["result"])


async def test_x2_what_may_not_run_twice_fails_when_its_server_is_killed(
    home: Path, serve_http: Serve
) -> None:
    url, server = serve_http(*FIXTURE, "--http", "0")
    async with connected(url, tasks=True, elicitation_callback=nobody) as client:
        task = (await as_task(client, "ask_plainly", {})).task_id
        await until(client.session, task, "input_required")
        os.kill(server.pid, signal.SIGKILL)
        server.wait(20)
    async with Backburner.open(home) as bb:
        mine = bb.session(session_name("tester", str(Path.cwd())))
        await (await mine.task(task)).wait(30)
    url, _ = serve_http(*FIXTURE, "--http", "0")
    async with connected(url, tasks=True) as again:
        failed = await about(again.session, "tasks/get", task)
        assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
