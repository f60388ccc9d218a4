"""X10: every surface shows and starts the tasks of any machine; doctor sees all of them."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from backburner import Backburner, State, sync
from backburner.serve import Binding, serving
from tests.cli.program import Program
from tests.mcp.client import MODERN, connected, program, text_of
from tests.nodes.conftest import NO_RECORD, NewWorker
from tests.serve.client import Api, Streamed
from tests.waiting import wait_until, wait_until_async

pytestmark = [pytest.mark.slow]


@pytest.fixture
async def apis(home: Path, address: str) -> AsyncIterator[tuple[Api, Api]]:
    """Two servers of one record."""
    async with (
        Backburner.open(address) as one,
        Backburner.open(address) as other,
        serving(one, Binding(port=0)) as first,
        serving(other, Binding(port=0)) as second,
    ):
        apis = Api(one, first), Api(other, second)
        yield apis
        for api in apis:
            await api.close()


async def test_e3_a_task_is_followed_through_another_server_than_it_was_started_with(
    apis: tuple[Api, Api], new_worker: NewWorker, tmp_path: Path
) -> None:
    new_worker("--concurrency", "8")
    here, there = apis
    command = f"echo first; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo second"
    body = {"kind": "shell", "command": command}
    started = (await here.post("/v1/sessions/chat/tasks", body)).json()
    path = f"/v1/tasks/{started['id']}"
    seen: list[Streamed] = []
    async with there.stream(f"{path}/events?output=true") as events, aclosing(cast(Any, events)):
        async for event in events:
            seen.append(event)
            if event.event == "output" and event.data["total"] == len("first\n"):
                assert (await there.json(f"{path}/output"))["text"] == "first\n"
                (tmp_path / "go").touch()
    assert seen[-1].event == "finished"
    assert (await there.json(f"{path}/output"))["text"] == "first\nsecond\n"
    assert (await there.get(f"{path}/log")).content == b"first\nsecond\n"
    numbers = [event.id for event in seen if event.id is not None]
    async with there.stream(f"{path}/events", last=int(numbers[0])) as events:
        resumed = [event.id async for event in events if event.id is not None]
    assert resumed == numbers[1:]

    answer = await there.json("/v1/workers")
    (worker,) = [each for each in answer["items"] if each["id"].startswith("nd_")]
    assert answer["shared"]
    assert worker["alive"]
    assert (worker["machine"], worker["queues"], worker["places"]) == (
        socket.gethostname(), ["default"], 8,
    )  # fmt: skip
    (line,) = (await there.json("/v1/queues"))["items"]
    assert (line["name"], line["workers"]) == (None, 1)


async def test_e3_a_token_lies_in_the_record(apis: tuple[Api, Api]) -> None:
    here, there = apis
    token = await here.new_token(owner="ada", role="viewer")
    assert (await there.json("/v1/me", token=token))["owner"] == "ada"
    await here.server.service.tokens.revoke(token.split("_")[1] if "_" in token else token)
    assert (await there.get("/v1/me", token=token)).status_code == 401


def test_without_await_it_is_the_same(home: Path, address: str, new_worker: NewWorker) -> None:
    new_worker()
    with sync.Backburner.open(address) as backburner:
        task = backburner.session("chat").run("cat", stdin=True)
        task.send("hello")
        task.send_eof()
        task.wait(timeout=60)
        assert (task.state, task.output().text) == (State.SUCCEEDED, "hello\n")


async def test_x6_a_coding_agent_starts_a_task_on_another_machine(
    home: Path, address: str, new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_worker()
    monkeypatch.setenv("BACKBURNER_HOME", address)
    async with connected(program("-m", "backburner.cli", "mcp"), MODERN) as client:
        started = await client.call_tool("background_run", {"command": "echo hel''lo"})
        task = cast("dict[str, Any]", started.structured_content)
        read = await client.call_tool("background_output", {"id": task["id"], "wait_seconds": 30})
        assert "hello" in text_of(read)


@pytest.fixture(params=["a folder", "a database"])
def record(request: pytest.FixtureRequest, home: Path) -> str:
    """Where a home or a shared record is."""
    return str(home) if request.param == "a folder" else request.getfixturevalue("address")


async def test_x6_what_utf_8_cannot_say_spoils_no_answer_to_a_model(
    home: Path, record: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_HOME", record)
    odd = os.fsdecode(b"caf\xe9.txt")
    async with Backburner.open(record) as backburner:
        session = backburner.session("chat")
        asked = await session.run(["echo", odd], title=odd)
        assert asked.record.spec["command"] == ["echo", odd], "or another file would be read"
    server = program("-m", "backburner.cli", "mcp", "--session", "chat")
    async with connected(server, MODERN) as client:
        listed = text_of(await client.call_tool("background_list", {}))
        assert r"caf\udce9.txt" in listed
        shown = await client.call_tool("background_output", {"id": asked.id, "wait_seconds": 0})
        assert not shown.is_error
        stopped = await client.call_tool("background_stop", {"id": asked.id})
        assert not stopped.is_error


def examined(backburner: Program) -> dict[str, tuple[str, str]]:
    done = backburner("doctor", "--json")
    assert done.err == ""
    found = {each["check"]: (each["level"], each["text"]) for each in done.json}
    assert done.code == any(level == "fail" for level, _ in found.values())
    return found


@NO_RECORD
def test_doctor_finds_what_is_wrong_with_the_machines(
    backburner: Program, address: str, new_worker: NewWorker
) -> None:
    assert examined(backburner)["format"][0] == "fail"
    backburner("db", "migrate")
    assert examined(backburner)["workers"][0] == "warn"
    backburner("queue", "set", "gpu", "--width", "2")
    backburner("run", "--queue", "gpu", "--", "true")
    level, text = examined(backburner)["workers"]
    assert (level, text.partition(";")[0]) == ("fail", "none takes on tasks, and 1 wait")
    worker = new_worker("--dead-after", "5")
    well = examined(backburner)
    level, text = well["workers"]
    assert (level, text.partition(";")[0]) == ("ok", "1 on 1 machine, 0 of 8 places taken")
    assert well["queues"] == ("warn", "no worker takes: gpu (1)")
    assert {name for name, (level, _) in well.items() if level != "ok"} == {"queues"}
    task = backburner("run", "--", "sleep 600").id
    wait_until(lambda: backburner("ls", "-q", "--state", "running").out)
    worker.kill()
    wait_until(lambda: "not seen to yet" in examined(backburner)["silent workers"][1])
    text = examined(backburner)["silent workers"][1]
    assert (text.count("nd_"), ".tools" in text) == (1, False), "a worker is one, to people"
    with psycopg.connect(address) as slow:  # a transaction, which nobody ends
        slow.execute("SELECT 1")
        slow.execute("SET idle_in_transaction_session_timeout = 0")
        worker.start()
        assert backburner("stop", task).code == 0
        assert "silent workers" not in {
            name for name, (level, _) in examined(backburner).items() if level != "ok"
        }


def test_doctor_calls_no_worker_silent_that_left_in_order(
    backburner: Program, new_worker: NewWorker
) -> None:
    worker = new_worker()
    worker.drain()
    assert worker.process.wait(60) == 0
    backburner("run", "--", "true")
    found = examined(backburner)
    assert found["silent workers"] == ("ok", "none")
    assert found["workers"] == ("fail", "none takes on tasks, and 1 wait")
    assert found["queues"] == ("warn", "no worker takes: default (1)")


def test_a_queue_that_workers_take_from_and_nobody_has_made_is_told_of(
    backburner: Program, new_worker: NewWorker
) -> None:
    """It may be made later, so it is not refused."""
    backburner("queue", "set", "gpu", "--width", "2")
    worker = new_worker("--queue", "nosuch", "--queue", "gpu", "--queue", "default")
    told = "there is no queue nosuch yet: backburner queue set nosuch --width 2 makes it"
    assert worker.said().count("there is no queue") == worker.said().count(told) == 1
    said = "workers take from what is not there: nosuch"
    assert examined(backburner)["queues"] == ("warn", said)
    backburner("queue", "set", "nosuch", "--width", "2")
    assert examined(backburner)["queues"][0] == "ok"


async def test_a_node_forgets_the_folders_of_what_was_forgotten_elsewhere(
    shared: Backburner, new_worker: NewWorker
) -> None:
    worker = new_worker()
    task = await shared.session("chat").run("echo here")
    await task.wait(timeout=60)
    folder = worker.home / "tasks" / f"{task.id}.1"
    assert folder.exists()
    assert await wait_until_async(lambda: shared.prune(older_than=0)) == 1
    import os

    os.utime(folder, (0, 0))  # a young one may belong to a task that is about to be written
    await asyncio.to_thread(worker.leave)
    worker.start()  # it looks at once, and then every hour
    await wait_until_async(lambda: not folder.exists(), timeout=60)
