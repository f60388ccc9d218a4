"""Who carries out tasks, and the queues that they wait in, over HTTP."""

from typing import Any

from tests.serve.client import Api


async def lines_of(api: Api, token: str | None = None) -> dict[str | None, Any]:
    return {each["name"]: each for each in (await api.json("/v1/queues", token=token))["items"]}


async def test_work_for_a_queue_that_nobody_has_made_is_refused_by_its_name(api: Api) -> None:
    await api.backburner.set_queue("build", 2)
    work = {"kind": "shell", "command": "true", "queue": "bild"}
    refused = await api.post("/v1/sessions/chat/tasks", work)
    assert (refused.status_code, refused.json()["code"]) == (422, "no_such_queue")
    assert "'bild'" in refused.json()["detail"]
    assert "build" in refused.json()["remedy"]


async def test_queues_are_listed_with_what_waits_and_runs_in_them(api: Api) -> None:
    await api.backburner.set_queue("build", 2)
    await api.backburner.pause_queue("build")
    waits = await api.backburner.session("chat").run("true", queue="build")
    held = await api.held_task("bg_held")
    found = await lines_of(api)
    assert list(found) == [None, "build"]
    assert found["build"] == {
        "name": "build", "width": 2, "paused": True, "waiting": 1, "running": 0, "workers": None,
    }  # fmt: skip
    assert (found[None]["width"], found[None]["running"]) == (None, 1)
    # How much others have in it is not theirs to know.
    stranger = await api.new_token(owner="ada")
    seen = (await lines_of(api, stranger)).values()
    assert [(each["waiting"], each["running"]) for each in seen] == [(0, 0), (0, 0)]
    own = await api.new_token()
    assert (await lines_of(api, own))["build"]["waiting"] == 1
    await waits.stop()
    await api.let_go(held)


async def test_an_application_is_listed_with_what_it_carries_out(api: Api) -> None:
    held = await api.held_task("bg_held")
    answer = await api.json("/v1/workers")
    (worker,) = answer["items"]
    assert (answer["shared"], worker["kind"], worker["running"]) == (False, "application", 1)
    assert (worker["draining"], worker["places"], worker["heard_at"]) == (False, None, None)
    assert (await api.json("/v1/workers", token=await api.new_token(owner="ada")))["items"] == []
    await api.let_go(held)
