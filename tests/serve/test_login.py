"""Logging a browser in: a code that works once, and a cookie that only our own page can use."""

import httpx2
import pytest

from backburner.serve import Binding
from tests.serve.client import TIME_LIMIT, Api, is_problem

OURS = {"X-Backburner": "1"}


def code_of(api: Api) -> str:
    return api.server.login.partition("#login=")[2]


async def browser(api: Api) -> httpx2.AsyncClient:
    """A browser that has opened the link."""
    client = httpx2.AsyncClient(base_url=api.server.address, timeout=TIME_LIMIT)
    answer = await client.post("/v1/login", json={"code": code_of(api)})
    assert answer.status_code == 200, answer.text
    return client


async def test_a_code_works_once(api: Api) -> None:
    client = await browser(api)
    assert (await client.get("/v1/me")).json() == {
        "owner": "local",
        "role": "admin",
        "session": None,
    }
    again = await api.client.post("/v1/login", json={"code": code_of(api)})
    assert is_problem(again, 401, "unauthenticated")
    await client.aclose()


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(api: Api) -> None:
    answer = await api.client.post("/v1/login", json={"token": api.token})
    cookie = answer.headers["set-cookie"]
    for wanted in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age="):
        assert wanted in cookie
    assert "Secure" not in cookie, "there is no TLS on loopback"
    assert api.token not in cookie, "a browser has a token of its own, which can be taken back"


@pytest.mark.parametrize("binding", [Binding(port=0, behind_proxy=True)])
async def test_behind_tls_the_cookie_goes_nowhere_else(api: Api, binding: Binding) -> None:
    answer = await api.client.post("/v1/login", json={"token": api.token})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-backburner-")
    assert "Secure" in cookie


async def test_with_the_cookie_changes_need_an_origin_and_a_header(api: Api) -> None:
    """CSRF: a form or an image of another page can send the cookie, and neither of those."""
    client = await browser(api)
    preview = ("/v1/schedules/preview", {"cron": "0 9 * * *"})
    own = {"Origin": api.server.address}
    for headers in ({}, OURS, own, {"Origin": "http://evil.example", **OURS}):
        answer = await client.post(preview[0], json=preview[1], headers=headers)
        assert is_problem(answer, 403, "cross_origin"), headers
    answer = await client.post(preview[0], json=preview[1], headers={**own, **OURS})
    assert answer.status_code == 200
    assert (await client.get("/v1/tasks")).status_code == 200
    await client.aclose()


async def test_logging_out_takes_the_token_of_the_browser_back(api: Api) -> None:
    client = await browser(api)
    kept = dict(client.cookies)
    headers = {"Origin": api.server.address, **OURS}
    assert (await client.post("/v1/logout", headers=headers)).status_code == 204
    assert not client.cookies
    for name, value in kept.items():
        client.cookies.set(name, value)
    assert is_problem(await client.get("/v1/me"), 401, "unauthenticated")
    assert (await api.get("/v1/me")).status_code == 200, "that of the file is another one"
    await client.aclose()


async def test_a_browser_is_logged_out_with_the_token_that_it_came_with(api: Api) -> None:
    """Also one that logged in with the token of another browser, and one with a code."""
    tokens = api.server.service.tokens
    made, text = await tokens.create("test")
    first, second = (
        httpx2.AsyncClient(base_url=api.server.address, timeout=TIME_LIMIT) for _ in range(2)
    )
    await first.post("/v1/login", json={"token": text})
    await second.post("/v1/login", json={"token": next(iter(first.cookies.values()))})
    code = api.server.service.logins.new_code(made)
    for client in (first, second):
        assert (await client.get("/v1/me")).status_code == 200
    await tokens.revoke(made.id)
    for client in (first, second):
        assert is_problem(await client.get("/v1/me"), 401, "unauthenticated")
        await client.aclose()
    late = await api.client.post("/v1/login", json={"code": code})
    assert is_problem(late, 401, "unauthenticated")


async def test_a_browser_is_logged_in_no_longer_than_its_token_lasts(api: Api) -> None:
    tokens = api.server.service.tokens
    short, text = await tokens.create("short", lasts_s=3600)
    await api.client.post("/v1/login", json={"token": text})
    browsers = [token for token in await tokens.listed() if token.parent == short.id]
    assert [token.expires_at for token in browsers] == [short.expires_at]


async def test_there_is_one_of_code_and_token(api: Api) -> None:
    for body in ({}, {"code": "a", "token": "b"}, {"code": None}):
        assert is_problem(await api.client.post("/v1/login", json=body), 422, "usage")


async def test_a_token_for_one_session_logs_in_to_that_session(api: Api) -> None:
    token = await api.new_token(role="viewer", session="chat")
    client = httpx2.AsyncClient(base_url=api.server.address, timeout=TIME_LIMIT)
    await client.post("/v1/login", json={"token": token})
    assert (await client.get("/v1/me")).json() == {
        "owner": "local",
        "role": "viewer",
        "session": "chat",
    }
    await client.aclose()
