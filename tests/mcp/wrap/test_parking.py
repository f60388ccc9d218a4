"""Calls past their budget, and what becomes of them when a client or the server goes away."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import types
from pydantic import FileUrl

from backburner import Backburner
from backburner.mcp.naming import session_name
from tests.faults.victims import take_away
from tests.mcp.wrap.conftest import Connect, Wire, appear, result_of
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow

Wiring = Callable[..., Wire]
ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


@ERAS
async def test_d2_a_call_past_its_budget_is_parked_and_its_result_is_kept(
    connect: Connect, home: Path, mode: str, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    async with connect(mode=mode, budget=0.5) as client:
        parked = await client.call_tool("until", {"path": str(flag)})
        assert not parked.is_error
        data: Any = parked.structured_content
        assert {key: data[key] for key in ("type", "tool", "timeout_seconds")} == {
            "type": "background",
            "tool": "until",
            "timeout_seconds": 0.5,
        }
        assert data["background_id"].startswith("bg_")
        appear(flag)
        read = await result_of(home, client, data["background_id"])
        assert read.structured_content is not None
        assert read.structured_content["result"] == {"result": "found it"}
        assert "finished after" in str(read.content)


async def test_x1_what_ended_is_told_with_the_next_call_of_a_wrapped_tool(
    connect: Connect, home: Path, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    async with connect(budget=5) as client:
        parked: Any = (await client.call_tool("until", {"path": str(flag)})).structured_content
        appear(flag)
        async with Backburner.open(home) as backburner:
            task = await backburner.session("test").task(parked["background_id"])
            await task.wait(30)
            told = await client.call_tool("add", {"a": 1, "b": 1})
            assert told.structured_content == {"total": 2}
            assert f"[completed] until ({task.id})" in str(told.content)
            assert told.meta is not None
            assert told.meta["backburner/signals"][0]["task"] == task.id
            again = await client.call_tool("add", {"a": 1, "b": 1})
            assert len(again.content) == 1
            [signal_] = await backburner.session("test").told()
            assert signal_.record.state == "delivered"


async def test_d2_a_tool_with_an_output_schema_can_be_parked(
    connect: Connect, tmp_path: Path
) -> None:
    """The official client checks what comes back against the schema that was listed."""
    flag = tmp_path / "flag"
    async with connect(budget=5) as client:
        await client.list_tools()
        parked = await client.call_tool("sum_until", {"path": str(flag)})
        assert parked.structured_content is not None
        assert parked.structured_content["type"] == "background"
        flag.touch()
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"total": 3}


def test_d6_a_cancelled_call_is_cancelled_at_the_server(
    wire: Wiring, notes: Path, tmp_path: Path
) -> None:
    client = wire(20)
    number = client.send(
        "tools/call",
        name="until",
        arguments={"path": f"{tmp_path}/never"},
        _meta={"progressToken": "p1"},
    )
    assert client.process.stdout is not None
    assert b'"p1"' in client.process.stdout.readline()  # the token is the client's own
    client.notify("notifications/cancelled", requestId=number)
    wait_until(lambda: f"cancelled {tmp_path}/never" in notes.read_text())
    assert client.call("background_list")["structuredContent"] == {"tasks": []}


async def test_x6_stopping_a_parked_call_cancels_it_at_the_server(
    connect: Connect, notes: Path, tmp_path: Path
) -> None:
    never = f"{tmp_path}/never"
    async with connect(budget=0.3) as client:
        parked: Any = (await client.call_tool("until", {"path": never})).structured_content
        stopped = await client.call_tool("background_stop", {"id": parked["background_id"]})
        assert "was stopped" in str(stopped.content)
        await wait_until_async(lambda: f"cancelled {never}" in notes.read_text())


@pytest.mark.parametrize("leave", ["hang_up", "terminate", "kill"])
async def test_x6_a_parked_call_outlives_its_client_and_the_next_one_is_told(
    wire: Wiring, home: Path, tmp_path: Path, leave: str
) -> None:
    flag = tmp_path / "flag"
    first = wire(0.3)
    parked = first.call("until", path=str(flag))["structuredContent"]["background_id"]
    getattr(first, leave)()
    appear(flag)
    async with Backburner.open(home) as backburner:
        task = await (await backburner.session("test").task(parked)).wait(30)
        assert task.state == "succeeded"
        assert task.result == {"result": "found it"}
    second = wire(20)
    told = second.call("echo", text="back")
    assert f"[completed] until ({parked})" in told["content"][-1]["text"]
    read = second.call("background_output", id=parked)["structuredContent"]
    assert read["result"] == {"result": "found it"}


def test_d6_a_call_within_its_budget_ends_with_its_client(
    wire: Wiring, notes: Path, tmp_path: Path
) -> None:
    client = wire(20)
    client.send(
        "tools/call",
        name="until",
        arguments={"path": f"{tmp_path}/never"},
        _meta={"progressToken": 1},
    )
    assert client.process.stdout is not None
    assert b"progress" in client.process.stdout.readline()
    client.hang_up()
    assert client.process.returncode == 0
    pid = int(notes.read_text().split()[1])
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


@ERAS
async def test_x6_the_death_of_the_server_fails_its_call_and_it_is_started_again(
    connect: Connect, mode: str, notes: Path
) -> None:
    async with connect(mode=mode) as client:
        died = await client.call_tool("die")
        assert died.is_error
        assert "the wrapped server, ended while this ran" in str(died.content)
        assert (await client.call_tool("echo", {"text": "again"})).structured_content == {
            "result": "again"
        }
        assert len([line for line in notes.read_text().splitlines() if "started" in line]) == 2


async def test_x6_the_death_of_the_server_is_the_failure_of_a_parked_call(
    connect: Connect, home: Path, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    async with connect(budget=0.3) as client:
        parked: Any = (await client.call_tool("die", {"path": str(flag)})).structured_content
        flag.touch()
        async with Backburner.open(home) as backburner:
            task = await backburner.session("test").task(parked["background_id"])
            await task.wait(30)
            assert task.state == "failed"
            assert task.record.error is not None
            assert "the wrapped server, ended while this ran" in task.record.error.message


async def test_x6_a_server_that_cannot_be_started_is_said(home: Path, wire: Wiring) -> None:
    words = [
        sys.executable,
        "-m",
        "backburner.mcp.wrap",
        "--",
        "/nowhere/server",
        "--key",
        "s3cret",
    ]
    message = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        b'"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'
    )
    with anyio.fail_after(30):
        process = await anyio.open_process(words, stderr=subprocess.DEVNULL)
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdin.send(message)
        answer = (await process.stdout.receive()).decode()
        await process.stdin.aclose()
        assert await process.wait() == 0
        await process.aclose()
    assert "the wrapped server, does not start" in answer
    assert "s3cret" not in answer


async def test_x6_nothing_of_one_client_reaches_another(
    connect: Connect, home: Path, tmp_path: Path
) -> None:
    """Each has a server of its own; another session's task is not found."""
    seen: list[Any] = []

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        seen.append(params.data)

    async with connect(budget=0.3) as one, connect(session="other", logging_callback=log) as two:
        await one.call_tool("log", {"text": "of the first"})
        parked: Any = (await one.call_tool("until", {"path": f"{tmp_path}/x"})).structured_content
        read = await two.call_tool("background_output", {"id": parked["background_id"]})
        assert read.is_error
        assert (await two.call_tool("background_list")).structured_content == {"tasks": []}
        first, second = await one.call_tool("whoami"), await two.call_tool("whoami")
        assert first.structured_content != second.structured_content
        (tmp_path / "x").write_text("it")
        assert "until" not in str((await two.call_tool("echo", {"text": "."})).content)
    assert seen == []


async def test_x6_the_session_is_that_of_the_client_in_its_folder(
    connect: Connect, home: Path, tmp_path: Path
) -> None:
    async def roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(tmp_path.as_uri()))])

    info = types.Implementation(name="some-agent", version="1")
    async with connect(session=None, client_info=info, list_roots_callback=roots) as client:
        started = await client.call_tool("background_run", {"command": "pwd > where"})
        assert not started.is_error
        where = tmp_path / "where"
        await wait_until_async(lambda: where.exists() and where.read_text() == f"{tmp_path}\n")
    async with Backburner.open(home) as backburner:
        session = backburner.session(session_name("some-agent", str(tmp_path)))
        assert len(await session.tasks()) == 1


async def test_x6_a_server_that_is_started_again_is_told_what_was_agreed_on(
    connect: Connect,
) -> None:
    seen: list[Any] = []

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        seen.append(params.data)

    async with connect(logging_callback=log) as client:
        first = (await client.call_tool("whoami")).structured_content
        await client.call_tool("die")
        assert (await client.read_resource("note://one")).contents
        await client.call_tool("log", {"text": "still here"})
        assert (await client.call_tool("whoami")).structured_content != first
    assert "still here" in str(seen)


def test_x6_a_complaint_of_the_server_is_passed_on_and_does_not_kill_it_later(
    wire: Wiring, home: Path
) -> None:
    client = wire(20)
    assert client.call("complain", text="it is hot in here")["structuredContent"] == {
        "result": "complained"
    }
    client.hang_up()
    assert "it is hot in here" in client.complaints()


async def test_x6_input_is_asked_of_the_client_and_when_parked_of_the_session(
    connect: Connect, home: Path, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"

    async def elicit(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"colour": "green"})

    async with connect(mode="auto", budget=5, elicitation_callback=elicit) as client:
        parked: Any = (await client.call_tool("ask_until", {"path": str(flag)})).structured_content
        task = parked["background_id"]
        flag.touch()
        assert (await client.call_tool("ask_until", {"path": str(flag)})).structured_content == {
            "result": "green state"
        }

        async def asked() -> bool:
            return "asks: Which colour?" in str(await client.call_tool("background_list"))

        await wait_until_async(asked)
        await client.call_tool("background_send", {"id": task, "text": '{"colour": "red"}'})
        read = await result_of(home, client, task)
        assert read.structured_content is not None
        assert read.structured_content["result"] == {"result": "red state"}


def test_x6_a_wrap_whose_home_is_removed_does_not_stay(
    wire: Wiring, home: Path, notes: Path, tmp_path: Path
) -> None:
    client = wire(0.3)
    client.call("until", path=f"{tmp_path}/never")
    client.hang_up()
    take_away(home)
    pid = int(notes.read_text().split()[1])
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_x6_the_command_line_wraps(wire: Wiring, home: Path, tmp_path: Path) -> None:
    client = wire(0.3, command_line=True)
    parked = client.call("until", path=f"{tmp_path}/flag")["structuredContent"]
    assert parked["type"] == "background"
    appear(tmp_path / "flag")

    def state() -> str:
        read = client.call("background_output", id=parked["background_id"])
        return read["structuredContent"]["state"]

    wait_until(lambda: state() == "succeeded")
    client.hang_up()
    assert client.process.returncode == 0


def test_e11_the_worker_is_killed_and_its_calls_are_orphaned(
    wire: Wiring, home: Path, tmp_path: Path
) -> None:
    first = wire(0.3)
    parked = first.call("until", path=f"{tmp_path}/never")["structuredContent"]["background_id"]
    [worker] = _children(first.process.pid)
    os.kill(worker, signal.SIGKILL)
    first.hang_up()
    second = wire(20)
    read = second.call("background_output", id=parked, wait_seconds=30)["structuredContent"]
    assert read["error"]["kind"] == "orphaned"


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]
