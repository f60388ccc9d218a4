"""Tasks over HTTP: started, found, stopped, talked to; real ones."""

import sys
from pathlib import Path
from typing import Any

import pytest

from backburner.model.ending import Ending
from backburner.model.states import ErrorKind, Kind
from backburner.serve.models.task import Task as TaskModel
from tests.serve.client import SPEC, Api, is_problem
from tests.waiting import wait_until_async


async def started(api: Api, body: dict[str, Any], session: str = "chat", **options: Any) -> Any:
    answer = await api.post(f"/v1/sessions/{session}/tasks", body, **options)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/v1/tasks/{answer.json()['id']}"
    return answer.json()


@pytest.mark.slow
async def test_the_life_of_a_shell_task(api: Api, tmp_path: Path) -> None:
    """From its start to its end, with a question in between, over HTTP alone."""
    ask = f"{sys.executable} -m backburner.cli ask 'which colour?'"
    line = f"echo begin; colour=$({ask}); echo got $colour; read line; echo $line; sleep 600"
    body = {"kind": "shell", "command": line, "title": "paint", "cwd": str(tmp_path), "stdin": True}
    task = await started(api, body)
    path = f"/v1/tasks/{task['id']}"
    assert (task["title"], task["session"], task["kind"]) == ("paint", "chat", "shell")

    async def asks() -> Any:
        return (await api.json(path))["state"] == "input_required"

    await wait_until_async(asks)
    (question,) = (await api.json(f"{path}/questions"))["items"]
    assert question["text"] == "which colour?"
    (waits,) = (await api.json("/v1/overview"))["waiting"]
    assert (waits["task"], waits["question"]) == (task["id"], question["id"])
    answer = await api.post(f"{path}/send", {"text": "blue", "question": question["id"]})
    assert answer.json() == {"question": question["id"]}
    stale = await api.post(f"{path}/send", {"text": "red", "question": question["id"]})
    assert is_problem(stale, 409, "nobody_asked")

    async def wrote(text: str) -> bool:
        return text in (await api.json(f"{path}/output"))["text"]

    await wait_until_async(lambda: wrote("got blue"))
    assert (await api.post(f"{path}/send", {"text": "input"})).json() == {"question": None}
    await wait_until_async(lambda: wrote("input"))
    tree = await api.json(f"{path}/processes")
    assert any("sleep" in each["command"] or "bash" in each["command"] for each in tree["items"])
    given = await api.json(f"{path}/input")
    assert (given["command"], given["takes_input"], given["cwd"]) == (line, "pipe", str(tmp_path))

    stopped = await api.post(f"{path}/stop", {"force": True})
    assert stopped.status_code in (200, 202)

    async def ended() -> bool:
        return (await api.json(path))["state"] == "canceled"

    await wait_until_async(ended)
    again = await api.post(f"{path}/stop")
    assert (again.status_code, again.json()["state"]) == (200, "canceled")
    assert (await api.json(f"{path}/processes"))["items"] == []
    assert (await api.json(f"{path}/result"))["state"] == "canceled"
    kinds = [event["kind"] for event in (await api.json(f"{path}/history"))["items"]]
    assert kinds[:2] == ["created", "started"]
    assert kinds[-1] == "finished"


@pytest.mark.slow
async def test_every_kind_starts_and_a_command_again(api: Api) -> None:
    async def until_ended(task: Any) -> Any:
        async def ended() -> Any:
            found = await api.json(f"/v1/tasks/{task['id']}")
            return found if found["finished_at"] else None

        return await wait_until_async(ended)

    shell = await until_ended(await started(api, {"kind": "shell", "command": ["echo", "a  b"]}))
    assert (shell["state"], shell["exit_code"]) == ("succeeded", 0)
    again = await api.post(f"/v1/tasks/{shell['id']}/rerun")
    assert again.status_code == 201
    assert again.json()["id"] != shell["id"]
    await until_ended(again.json())
    call = {"kind": "python", "call": "json:dumps", "arguments": {"obj": [1]}}
    assert (await until_ended(await started(api, call)))["result"] == "[1]"
    broken = await started(api, {"kind": "agent", "prompt": "say hello"})
    ended = await until_ended(broken)
    assert ended["error"]["kind"] == "error", "no model is configured, and the task says so"


async def test_a_tool_is_started_by_its_name(api: Api) -> None:
    (tool,) = (await api.json("/v1/tools"))["items"]
    assert (tool["name"], tool["hints"]["supports_background"]) == ("hold", True)
    body = {"kind": "tool", "tool": "hold", "arguments": {"name": "x"}}
    task = await started(api, body)
    (worker,) = (await api.json("/v1/workers"))["items"]
    assert (worker["alive"], worker["tasks"]) == (True, [task["id"]])
    stopped = await api.post(f"/v1/tasks/{task['id']}/stop")
    assert (stopped.status_code, stopped.json()["state"]) == (200, "canceled")
    unknown = await api.post("/v1/sessions/chat/tasks", {"kind": "tool", "tool": "nix"})
    assert is_problem(unknown, 422, "usage")
    refused = await api.post("/v1/sessions/chat/tasks", body | {"arguments": {"nix": 1}})
    assert is_problem(refused, 422, "arguments")
    assert is_problem(await api.post(f"/v1/tasks/{task['id']}/rerun"), 422, "usage")


async def test_the_same_key_starts_once(api: Api) -> None:
    body = {"kind": "tool", "tool": "hold", "arguments": {"name": "x"}}
    key = {"Idempotency-Key": "request 1"}
    first = await started(api, body, headers=key)
    again = await started(api, body, headers=key)
    assert first["id"] == again["id"]
    other = await api.post(
        "/v1/sessions/chat/tasks", body | {"arguments": {"name": "y"}}, headers=key
    )
    assert is_problem(other, 409, "conflict")
    elsewhere = await started(api, body, session="work", headers=key)
    bob = await api.new_token(owner="bob")
    his = await started(api, body, headers=key, token=bob)
    assert len({first["id"], elsewhere["id"], his["id"]}) == 3
    for task, token in ((first, None), (elsewhere, None), (his, bob)):
        await api.post(f"/v1/tasks/{task['id']}/stop", token=token)


async def test_a_limit_is_a_problem_that_says_when_to_come_back(api: Api) -> None:
    """E3: five runs of tools a session."""
    body = {"kind": "tool", "tool": "hold", "arguments": {"name": "x"}}
    tasks = [await started(api, body) for _ in range(5)]
    refused = await api.post("/v1/sessions/chat/tasks", body)
    assert is_problem(refused, 429, "limit")
    for task in tasks:
        await api.post(f"/v1/tasks/{task['id']}/stop")


async def test_tasks_are_found_page_by_page_and_by_what_they_are(api: Api) -> None:
    for number in range(7):
        await api.ended_task(f"bg_{number}", title=f"Number {number}", session=f"s{number % 2}")
    failed = Ending.failed(ErrorKind.ERROR, "no")
    await api.ended_task("bg_bad", title="bad", kind=Kind.PYTHON, ending=failed)

    async def ids(**params: Any) -> list[str]:
        page = await api.json("/v1/tasks", params=params)
        return [task["id"] for task in page["items"]]

    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await api.json(
            "/v1/tasks", params={"limit": 3} | ({"cursor": cursor} if cursor else {})
        )
        seen += [task["id"] for task in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == ["bg_bad", *(f"bg_{number}" for number in reversed(range(7)))]
    assert await ids(state="failed") == ["bg_bad"]
    assert await ids(kind="python") == ["bg_bad"]
    assert await ids(q="nUmBeR 3") == ["bg_3"]
    assert await ids(session="s1") == ["bg_5", "bg_3", "bg_1"]
    assert await ids(q="nothing") == []
    sessions = await api.json("/v1/sessions")
    counts = {each["name"]: each["counts"] for each in sessions["items"]}
    assert counts == {"s0": {"succeeded": 4}, "s1": {"succeeded": 3}, "chat": {"failed": 1}}
    overview = await api.json("/v1/overview")
    assert (overview["counts"]["succeeded"], overview["counts"]["failed"]) == (7, 1)
    assert [bar["task"] for bar in overview["failures"]] == ["bg_bad"]
    assert overview["bars"][0]["task"] == "bg_bad"
    assert (await api.json("/v1/overview", params={"hours": 1e-6}))["bars"] == []


async def test_a_page_ends_where_results_become_too_much(api: Api) -> None:
    """X3: an answer is bounded, whatever tasks give as their results."""
    large = Ending.succeeded(result="x" * 1_000_000)
    for number in range(8):
        await api.ended_task(f"bg_{number}", ending=large)
    first = await api.json("/v1/tasks")
    assert 0 < len(first["items"]) < 8
    second = await api.json("/v1/tasks", params={"cursor": first["next"]})
    found = [task["id"] for task in [*first["items"], *second["items"]]]
    assert found == [f"bg_{number}" for number in reversed(range(8))]
    assert second["next"] is None
    assert len((await api.get("/v1/overview")).content) < 10_000


async def test_a_task_as_json_is_all_that_the_contract_names(api: Api) -> None:
    """The model has each field of the document, so nothing of it is left out on the way."""
    task = await api.ended_task(title="odd \udcff".encode("utf-8", "replace").decode())
    document = api.backburner.tasks.describe(task)
    assert set(document) == set(TaskModel.model_fields)
    assert await api.json(f"/v1/tasks/{task.id}") == document


async def test_children_are_what_it_started_and_what_its_own_session_has(api: Api) -> None:
    agent = await api.ended_task("bg_agent", kind=Kind.AGENT, spec=SPEC | {"prompt": "x"})
    await api.ended_task("bg_child", session=agent.id)
    await api.ended_task("bg_other", parent=agent.id)
    await api.ended_task("bg_not")
    found = (await api.json(f"/v1/tasks/{agent.id}/children"))["items"]
    assert [task["id"] for task in found] == ["bg_other", "bg_child"]
    (own,) = [s for s in (await api.json("/v1/sessions"))["items"] if s["name"] == agent.id]
    assert own["parent"] == agent.id
    token = await api.new_token(session="chat")
    within = await api.json(f"/v1/tasks/{agent.id}/children", token=token)
    assert [task["id"] for task in within["items"]] == ["bg_other"]


async def test_a_session_may_have_any_name(api: Api) -> None:
    for name in ("a/b", "a%2Fb", "ä ö", "..", "?x#y", "x" * 200):
        from urllib.parse import quote

        await api.ended_task(session=name)
        found = await api.json(
            f"/v1/sessions/{quote(name, safe='')}/tasks".replace("/../", "/%2e%2e/")
        )
        assert [task["session"] for task in found["items"]] == [name], name


async def test_signals_are_seen_without_being_taken_and_acknowledged_once(api: Api) -> None:
    first = await api.ended_task()
    second = await api.ended_task()
    listed = await api.json("/v1/sessions/chat/signals")
    assert [each["task"] for each in listed["items"]] == [first.id, second.id]
    assert {each["state"] for each in listed["items"]} == {"pending"}
    newest = await api.json("/v1/signals", params={"limit": 1})
    assert [each["task"] for each in newest["items"]] == [second.id]
    older = await api.json("/v1/signals", params={"limit": 1, "cursor": newest["next"]})
    assert [each["task"] for each in older["items"]] == [first.id]
    keys = {"keys": [f"{first.id}:end", "nix"]}
    for expected in (1, 0):
        done = await api.post("/v1/sessions/chat/signals/ack", keys)
        assert done.json() == {"acknowledged": expected}
    open_ones = await api.json("/v1/sessions/chat/signals", params={"state": "pending"})
    assert [each["task"] for each in open_ones["items"]] == [second.id]


async def test_parked_calls_have_typed_answers(api: Api) -> None:
    """D10, D3."""
    session = api.backburner.session("chat")
    called = await session.invoke("hold", {"name": "x"}, budget=0.01)
    assert called.parked
    path = "/v1/sessions/chat/background-tools"
    listed = await api.json(path)
    assert (listed["type"], len(listed["tasks"])) == ("background_tool_list", 1)
    (entry,) = listed["tasks"]
    assert (entry["tool"], entry["done"]) == ("hold", False)
    one = await api.json(f"{path}/{entry['background_id']}")
    assert (one["type"], one["status"]) == ("background_tool_status", "still_running")
    canceled = await api.post(f"{path}/{entry['background_id']}/cancel")
    assert canceled.json()["status"] == "cancelled"
    task = await api.ended_task()
    assert is_problem(await api.get(f"{path}/{task.id}"), 404, "not_found")
    schemas = (await api.json("/openapi.json"))["components"]["schemas"]
    assert {"BackgroundToolStatus", "BackgroundToolList", "BackgroundToolListEntry"} <= set(schemas)


@pytest.mark.slow
async def test_schedules_are_made_paused_resumed_and_ended(api: Api) -> None:
    """E9."""
    wish = {"cron": "0 9 * * *", "tz": "Europe/Berlin", "work": "true", "title": "daily"}
    path = "/v1/sessions/chat/schedules"
    key = {"Idempotency-Key": "daily"}
    made = await api.post(path, wish, headers=key)
    assert made.status_code == 201, made.text
    assert (await api.post(path, wish, headers=key)).json()["schedule_id"] == (
        made.json()["schedule_id"]
    )
    one = f"{path}/{made.json()['schedule_id']}"
    assert made.headers["location"] == one
    assert (await api.json(path))["items"][0]["title"] == "daily"
    assert len((await api.json("/v1/schedules"))["items"]) == 1
    for enabled, status in ((False, "paused"), (False, "paused"), (True, "scheduled")):
        changed = await api.client.patch(one, json={"enabled": enabled}, headers=api.headers())
        assert changed.json()["status"] == status
    gone = await api.client.delete(one, headers=api.headers())
    assert gone.json()["status"] == "canceled"
    late = await api.client.patch(one, json={"enabled": True}, headers=api.headers())
    assert is_problem(late, 409, "conflict")
    for bad in ({"work": "true"}, wish | {"at": "2030-01-01T00:00:00Z"}, wish | {"cron": "nix"}):
        assert is_problem(await api.post(path, bad), 422, "usage")


async def test_a_preview_of_the_next_firings(api: Api) -> None:
    wish = {"cron": "0 9 * * 1", "tz": "Europe/Berlin", "count": 3}
    times = (await api.post("/v1/schedules/preview", wish)).json()["times"]
    assert len(times) == 3
    assert times == sorted(times)
    single = await api.post("/v1/schedules/preview", {"at": "2040-01-01T00:00:00Z"})
    assert single.json()["times"] == ["2040-01-01T00:00:00.000000Z"]
    past = await api.post("/v1/schedules/preview", {"at": "2001-01-01T00:00:00Z"})
    assert past.json() == {"times": []}
    assert is_problem(await api.post("/v1/schedules/preview", {"cron": "x"}), 422, "usage")
