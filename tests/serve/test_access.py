"""D9: every route × who asks. New routes are found by themselves; see BODIES."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from fastapi.routing import APIRoute

from backburner.serve.app import ROUTERS
from backburner.serve.app import api as routes
from backburner.serve.description import PUBLIC
from tests.serve.client import Api, is_problem

BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/sessions/{session}/tasks"): {"kind": "tool", "tool": "nix"},
    ("POST", "/v1/tasks/{id}/stop"): {},
    ("POST", "/v1/tasks/{id}/send"): {"text": "yes"},
    ("POST", "/v1/tasks/{id}/rerun"): None,
    ("POST", "/v1/sessions/{session}/signals/ack"): {"keys": ["bg_x:end"]},
    ("POST", "/v1/sessions/{session}/background-tools/{id}/cancel"): None,
    ("POST", "/v1/schedules/preview"): {"cron": "0 9 * * *"},
    ("POST", "/v1/sessions/{session}/schedules"): {"work": "true"},  # and no time: refused later
    ("PATCH", "/v1/sessions/{session}/schedules/{id}"): {"enabled": False},
    ("DELETE", "/v1/sessions/{session}/schedules/{id}"): None,
    ("POST", "/v1/login"): {"code": "nix"},
    ("POST", "/v1/logout"): None,
}
"""How to call each route that is no GET, so that only who asks can be what is wrong."""

READS = {("POST", "/v1/schedules/preview"), ("POST", "/v1/logout")}
"""What a viewer may do though it is no GET."""

FOR_ADMINS = {("GET", "/metrics")}


@dataclass(frozen=True)
class Route:
    method: str
    path: str

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.path

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def every_route() -> Iterator[Route]:
    for path, methods in routes().openapi()["paths"].items():
        for method in methods:
            yield Route(method.upper(), path)


def test_every_route_is_in_the_document_and_every_change_says_how_it_is_called() -> None:
    found = list(every_route())
    assert len(found) > 35
    described = {(route.method, route.path) for route in found}
    registered = [
        (method, route.path)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    ]
    assert sorted(registered) == sorted(described)
    missing = [str(route) for route in found if route.method != "GET" and route.key not in BODIES]
    assert missing == [], "add them to BODIES"


async def ask(api: Api, route: Route, token: str | None, **names: str) -> httpx2.Response:
    """The answer; of a stream only how it begins."""
    path = re.sub(r"{(\w+)}", lambda match: names[match[1]], route.path)
    headers = {} if token is None else api.headers(token)
    body = BODIES.get(route.key)
    async with api.client.stream(
        route.method, path, headers=headers, json=body if route.method != "GET" else None
    ) as answer:
        if "text/event-stream" not in answer.headers.get("content-type", ""):
            await answer.aread()
        return answer


@pytest.fixture
async def names(api: Api) -> dict[str, str]:
    """A task and a schedule of the local owner, under the names that routes have for them."""
    task = await api.ended_task("bg_mine", session="chat")
    return {"id": task.id, "session": "chat", "name": "report.txt"}


@pytest.mark.slow
async def test_without_a_token_that_opens_something_there_is_nothing(
    api: Api, names: dict[str, str]
) -> None:
    revoked = await api.new_token(role="admin")
    await api.server.service.tokens.revoke(revoked.split("_")[1])
    for route in every_route():
        if route.path in PUBLIC:
            continue
        for token in (None, "nonsense", f"{api.token[:-1]}!", revoked):
            answer = await ask(api, route, token, **names)
            if answer.status_code == 429:  # wrong ones come too often; a right one is let in
                assert is_problem(answer, 429, "too_many_requests")
            else:
                assert is_problem(answer, 401, "unauthenticated"), str(route)
                assert answer.headers["www-authenticate"].startswith("Bearer")
    assert (await api.get("/v1/me")).status_code == 200


@pytest.mark.slow
async def test_a_viewer_looks_and_changes_nothing(api: Api, names: dict[str, str]) -> None:
    viewer = await api.new_token(role="viewer")
    for route in every_route():
        if route.path in PUBLIC:
            continue
        answer = await ask(api, route, viewer, **names)
        if route.key in FOR_ADMINS or (route.method != "GET" and route.key not in READS):
            assert is_problem(answer, 403, "not_allowed"), str(route)
        else:
            assert answer.status_code not in (401, 403), (str(route), answer.status_code)
    assert len((await api.json("/v1/tasks"))["items"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("role", ["user", "admin"])
async def test_a_user_and_an_admin_are_let_in(api: Api, names: dict[str, str], role: str) -> None:
    token = await api.new_token(role=role)
    for route in every_route():
        if route.path in PUBLIC:
            continue
        answer = await ask(api, route, token, **names)
        if route.key in FOR_ADMINS and role == "user":
            assert is_problem(answer, 403, "not_allowed"), str(route)
        else:
            assert answer.status_code not in (401, 403, 500), (str(route), answer.status_code)


@pytest.mark.slow
async def test_what_is_not_yours_is_not_there_byte_for_byte(
    api: Api, names: dict[str, str]
) -> None:
    """Another owner, and a token for another session of the same owner: the same answers as for
    an id and a session that nobody has."""
    strangers = {
        "another owner": await api.new_token(owner="bob", role="admin"),
        "another session": await api.new_token(role="admin", session="work"),
        "a viewer elsewhere": await api.new_token(role="viewer", session="work"),
    }
    nobody = {"id": "bg_none", "session": "none", "name": "report.txt"}
    for route in every_route():
        for who, token in strangers.items():
            theirs = await ask(api, route, token, **names)
            if "{" not in route.path or theirs.headers["content-type"] == "text/event-stream":
                assert "bg_mine" not in _text(theirs), (str(route), who)
                continue
            absent = await ask(api, route, token, **nobody)
            if "{id}" in route.path or who != "another owner":
                assert theirs.status_code in (403, 404), (str(route), who)
            seen = (theirs.status_code, _without_names(theirs, names))
            assert seen == (absent.status_code, _without_names(absent, nobody)), (str(route), who)
    assert (await api.json("/v1/tasks/bg_mine"))["state"] == "succeeded"


def _text(answer: httpx2.Response) -> str:
    return answer.text if answer.is_closed and hasattr(answer, "_content") else ""


def _without_names(answer: httpx2.Response, names: dict[str, str]) -> bytes:
    """The body, without the names that the request itself gave."""
    return answer.content.replace(f'"{names["session"]}"'.encode(), b"")


async def test_a_token_for_one_session_sees_that_session_everywhere(api: Api) -> None:
    await api.ended_task("bg_chat", session="chat")
    await api.ended_task("bg_work", session="work")
    token = await api.new_token(session="work")
    tasks = (await api.get("/v1/tasks", token)).json()
    assert [task["id"] for task in tasks["items"]] == ["bg_work"]
    sessions = (await api.get("/v1/sessions", token)).json()
    assert [each["name"] for each in sessions["items"]] == ["work"]
    signals = (await api.get("/v1/signals", token)).json()
    assert {each["session"] for each in signals["items"]} == {"work"}
    bars = (await api.get("/v1/overview", token)).json()["bars"]
    assert [bar["task"] for bar in bars] == ["bg_work"]
    assert is_problem(await api.get("/v1/tasks?session=chat", token), 404, "not_found")
    assert is_problem(await api.get("/v1/tasks/bg_chat", token), 404, "not_found")
