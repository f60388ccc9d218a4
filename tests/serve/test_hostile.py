"""What a job, a name or a wish can hold spoils no answer, least of all that to everybody."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from backburner.model.ending import Ending
from tests.serve.client import SPEC, Api
from tests.waiting import wait_until_async

HALF = "\ud800"
"""Half of a character: JSON can spell it, UTF-8 cannot."""


async def test_a_result_that_no_encoding_can_say_hides_no_other_task(api: Api) -> None:
    result = {"a": [HALF], HALF: "ü"}
    spec: dict[str, Any] = {"call": "x:y", "arguments": {"text": HALF}}
    task = await api.ended_task(ending=Ending.succeeded(result=result), spec={**SPEC, **spec})
    other = await api.ended_task(title="other")
    listed = await api.json("/v1/tasks")
    assert {each["id"] for each in listed["items"]} == {task.id, other.id}
    for path in ("", "/result"):
        found = (await api.json(f"/v1/tasks/{task.id}{path}"))["result"]
        assert found == {"a": ["\ufffd"], "\ufffd": "ü"}
    assert (await api.json(f"/v1/tasks/{task.id}/input"))["arguments"] == {"text": "\ufffd"}


async def test_a_file_whose_name_is_no_text_is_no_artifact(api: Api) -> None:
    task = await api.ended_task()
    folder = api.backburner.home.attempt(task.id, 1)
    os.makedirs(folder.artifacts)
    for name in (b"\xff", b"two\nlines", b"fine"):
        Path(os.fsdecode(os.fsencode(folder.artifacts) + b"/" + name)).write_bytes(b"x")
    listed = await api.json("/v1/tasks")
    assert [each["name"] for each in listed["items"][0]["artifacts"]] == ["fine"]
    found = await api.json(f"/v1/tasks/{task.id}/artifacts")
    assert [each["name"] for each in found["items"]] == ["fine"]


@pytest.mark.slow
async def test_a_process_whose_name_is_no_text_is_listed(api: Api) -> None:
    program = "import os; os.execv('/usr/bin/sleep', [b'\\xff', b'600'])"
    body = {"kind": "shell", "command": [sys.executable, "-c", program]}
    task = (await api.post("/v1/sessions/chat/tasks", body)).json()

    async def renamed() -> bool:
        tree = await api.json(f"/v1/tasks/{task['id']}/processes")
        return "\ufffd 600" in [each["command"] for each in tree["items"]]

    await wait_until_async(renamed)
    await api.post(f"/v1/tasks/{task['id']}/stop", {"force": True})

    async def ended() -> bool:
        return (await api.json(f"/v1/tasks/{task['id']}"))["state"] == "canceled"

    await wait_until_async(ended)


@pytest.mark.parametrize("name", ["日本", "a/b", "a\r\nX-Evil: 1", "%2F ?#", "<b>\u202eüñ"])
async def test_a_schedule_is_found_where_its_answer_says_whatever_its_session_is_called(
    api: Api, name: str
) -> None:
    path = "/v1/sessions/{}/schedules".format("".join(f"%{byte:02X}" for byte in name.encode()))
    made = await api.post(path, {"cron": "0 0 1 1 *", "work": "true"})
    assert made.status_code == 201, made.text
    assert "x-evil" not in made.headers
    found = await api.json(made.headers["location"])
    assert (found["session"], found["schedule_id"]) == (name, made.json()["schedule_id"])
