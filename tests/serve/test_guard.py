"""What stands before everything: names, origins, sizes, rates; and headers on every answer."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from backburner.model.errors import NotAllowed, UsageError
from backburner.serve import Binding, Load
from backburner.serve.rates import Rate
from tests.serve.client import Api, is_problem

OWN_NAME = Binding(port=0, names=("box.lan",))


OURS = (
    "127.0.0.1",
    "127.0.0.1:1234",
    "localhost:99",
    "LOCALHOST",
    "[::1]:8642",
    "10.1.2.3",
    "box.lan",
    "Box.Lan.:8642",
)
NOT_OURS = (
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example:127.0.0.1",
    "",
    "[::1",
    "user@localhost",
    "evil.example@localhost",
)


@pytest.mark.parametrize("binding", [OWN_NAME])
async def test_only_names_that_were_agreed_on(api: Api, binding: Binding) -> None:
    """A name that leads here all of a sudden (DNS rebinding) opens nothing."""
    for path in ("/v1/me", "/", "/healthz"):
        for host in OURS:
            assert (await api.get(path, headers={"Host": host})).status_code == 200, host
        for host in NOT_OURS:
            assert is_problem(await api.get(path, headers={"Host": host}), 421, "wrong_host")


async def test_a_page_of_another_site_is_refused_also_with_a_token(api: Api) -> None:
    own = api.server.address
    strangers = ("http://evil.example", "http://127.0.0.1:1", "null", "", "http://[", "file://")
    for origin in (own, *strangers, f"{own}.evil.example"):
        headers = {"Origin": origin}
        for answer in (
            await api.get("/v1/me", headers=headers),
            await api.post("/v1/schedules/preview", {"cron": "0 9 * * *"}, headers=headers),
        ):
            if origin == own:
                assert answer.status_code == 200, answer.text
            else:
                assert is_problem(answer, 403, "cross_origin")
            assert "access-control-allow-origin" not in answer.headers


async def test_every_answer_has_safe_headers(api: Api) -> None:
    for answer in (
        await api.get("/v1/me"),
        await api.get("/"),
        await api.get("/nix"),
        await api.get("/v1/me", headers={"Host": "evil.example"}),
        await api.client.get("/v1/me"),
        await api.client.put("/v1/me"),
        await api.post("/v1/sessions/s/tasks", {"kind": "nix"}),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "server" not in answer.headers


@pytest.mark.parametrize("binding", [Binding(port=0, load=Load(body_bytes=1000))])
async def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(
    api: Api, binding: Binding
) -> None:
    long = {"cron": "0" * 2000}
    assert is_problem(await api.post("/v1/schedules/preview", long), 413, "too_large")

    async def pieces() -> AsyncGenerator[bytes]:
        for _ in range(20):
            yield b'{"cron": "' + b"0" * 90

    answer = await api.client.post("/v1/schedules/preview", content=pieces(), headers=api.headers())
    assert is_problem(answer, 413, "too_large")
    assert (await api.get("/v1/me")).status_code == 200


@pytest.mark.parametrize("binding", [Binding(port=0, load=Load(body_s=0.05))])
async def test_a_body_that_does_not_come_keeps_no_place(api: Api, binding: Binding) -> None:
    assert b"408" in await first_line(api, f"Authorization: Bearer {api.token}\r\n", "{")


@pytest.mark.parametrize("binding", [Binding(port=0, load=Load(body_s=0.05, body_bytes=10))])
async def test_one_that_is_too_large_and_does_not_come_is_answered(
    api: Api, binding: Binding
) -> None:
    assert b"413" in await first_line(api, "", "")


async def test_who_is_not_known_does_not_get_to_send_a_body(api: Api) -> None:
    assert b"401" in await first_line(api, "", "")


async def first_line(api: Api, headers: str, body: str) -> bytes:
    """The beginning of the answer to a request whose body is never sent whole."""
    host, _, port = api.server.address.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /v1/schedules/preview HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000\r\n"
    writer.write(f"{head}{headers}\r\n{body}".encode())
    try:
        async with asyncio.timeout(30):
            return await reader.readline()
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("binding", [Binding(port=0, load=Load(per_second=0.001, burst=5))])
async def test_a_token_may_ask_only_so_often(api: Api, binding: Binding) -> None:
    answers = [await api.get("/v1/me") for _ in range(7)]
    assert [each.status_code for each in answers] == [200] * 5 + [429] * 2
    assert is_problem(answers[-1], 429, "too_many_requests")
    assert int(answers[-1].headers["retry-after"]) > 0
    other = await api.new_token()
    assert (await api.get("/v1/me", other)).status_code == 200


@pytest.mark.parametrize("binding", [Binding(port=0, load=Load(guesses_per_minute=1))])
async def test_guesses_are_slowed_down_and_a_right_token_is_not(api: Api, binding: Binding) -> None:
    wrong = [await api.get("/v1/me", "nonsense") for _ in range(2)]
    assert [each.status_code for each in wrong] == [401, 429]
    code = await api.client.post("/v1/login", json={"code": "nonsense"})
    assert code.status_code == 429
    assert (await api.get("/v1/me")).status_code == 200


@pytest.mark.parametrize("binding", [Binding(port=0, load=Load(requests=1, burst=10**6))])
async def test_there_is_a_limit_to_what_is_carried_out_at_once(api: Api, binding: Binding) -> None:
    """A body that does not come keeps one request going for as long as it likes."""
    going_on = asyncio.Event()
    enough = asyncio.Event()

    async def slowly() -> AsyncGenerator[bytes]:
        yield b'{"cron": '
        going_on.set()
        await enough.wait()
        yield b'"0 9 * * *"}'

    headers = api.headers() | {"Content-Type": "application/json"}
    slow = asyncio.create_task(
        api.client.post("/v1/schedules/preview", content=slowly(), headers=headers)
    )
    await going_on.wait()
    answer = await api.get("/v1/me")
    while answer.status_code == 200:  # the server may not have seen the first one yet
        answer = await api.get("/v1/me")
    assert is_problem(answer, 503, "overloaded")
    enough.set()
    assert (await slow).status_code == 200
    assert (await api.get("/v1/me")).status_code == 200


async def test_errors_of_every_kind_are_problems(api: Api) -> None:
    assert is_problem(await api.get("/v1/nix"), 404, "not_found")
    assert is_problem(await api.get("/v1/tasks/bg_nix"), 404, "not_found")
    assert is_problem(await api.get("/v1/tasks/%00"), 404, "not_found")
    assert is_problem(await api.get("/v1/tasks/%ff"), 404, "not_found")
    put = await api.client.put("/v1/sessions/s/schedules/x", headers=api.headers())
    assert is_problem(put, 405, "method_not_allowed")
    assert put.headers["allow"] == "DELETE, GET, PATCH"
    assert is_problem(await api.get("/v1/tasks?limit=0"), 422, "usage")
    assert is_problem(await api.post("/v1/sessions/s/tasks", {"kind": "nix"}), 422, "usage")
    odd = await api.client.post("/v1/schedules/preview", content=b"{", headers=api.headers())
    assert is_problem(odd, 422, "usage")
    secret = await api.post("/v1/sessions/s/tasks", {"kind": "shell", "token": "hunter2"})
    assert is_problem(secret, 422, "usage")
    assert "hunter2" not in secret.text


async def test_what_nobody_foresaw_is_a_reference_and_no_more(
    api: Api, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(api.backburner.store, "sessions", broken)
    answer = await api.get("/v1/sessions")
    assert is_problem(answer, 500, "internal")
    assert "hunter2" not in answer.text
    reference = answer.json()["detail"].split()[-1]
    assert reference in caplog.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await api.get("/v1/me")).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.com", ""])
def test_other_addresses_need_tls_or_a_proxy(host: str) -> None:
    with pytest.raises(NotAllowed, match="unencrypted"):
        Binding(host)
    assert Binding(host, behind_proxy=True).secure
    assert Binding(host, tls_cert="c", tls_key="k").secure


def test_tls_needs_both_files() -> None:
    with pytest.raises(UsageError, match="certificate and its key"):
        Binding(tls_cert="c")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_needs_nothing(host: str) -> None:
    assert not Binding(host).secure


def test_a_rate_fills_by_itself() -> None:
    now = 0.0
    rate = Rate(2, 3, lambda: now)
    assert [rate.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert rate.take("b") == 0
    now = 0.5
    assert rate.take("a") == 0
    assert rate.take("a") > 0
    now = 100
    assert [rate.take("a") == 0 for _ in range(4)] == [True, True, True, False]


async def test_output_is_never_markup(api: Api) -> None:
    """A job prints HTML: whatever a browser is told of it, it is no page."""
    task = await api.ended_task("bg_html", title="<script>alert(1)</script>")
    folder = api.backburner.home.attempt(task.id, 1)
    await asyncio.to_thread(_write, folder.path, folder.log, b"<script>alert(1)</script>\x1b[31m")
    for path in ("", "/output", "/log", "/input"):
        answer: httpx2.Response = await api.get(f"/v1/tasks/{task.id}{path}")
        assert answer.status_code == 200, answer.text
        kind = answer.headers["content-type"]
        assert kind in ("application/json", "application/octet-stream"), path
        assert answer.headers["x-content-type-options"] == "nosniff"
    log = await api.get(f"/v1/tasks/{task.id}/log")
    assert log.headers["content-disposition"].startswith("attachment")
    assert json.loads((await api.get(f"/v1/tasks/{task.id}/output")).text)["text"]


def _write(folder: str, path: str, data: bytes) -> None:
    import os

    os.makedirs(folder)
    with open(path, "wb") as file:
        file.write(data)
