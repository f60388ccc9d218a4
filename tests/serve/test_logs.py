"""D9: what the server logs is JSON, without secrets, and cut."""

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry.trace import (
    INVALID_SPAN_CONTEXT,
    NonRecordingSpan,
    NoOpTracer,
    get_current_span,
)

from backburner.serve import observe
from backburner.serve.logs import logging_as_json
from tests.serve.client import Api

Captured = pytest.CaptureFixture[str]


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def fail() -> None:
    raise ValueError("password=hunter2")


def test_secrets_are_hidden_and_everything_is_cut(capsys: Captured) -> None:
    log = logging.getLogger("backburner.serve")
    with logging_as_json(logging.INFO):
        log.info("x", extra={"api_key": "hunter2", "nested": {"password": "hunter2"}})
        log.info("Authorization: Bearer hunter2 and token=hunter2")
        log.info("long", extra={"value": "v" * 1000})
        log.info("line\nbreak \x1b[31m")
        try:
            fail()
        except ValueError:
            log.exception("broken")
    logged = capsys.readouterr().err
    assert "hunter2" not in logged
    found = lines(logged)
    assert len(found) == 5, "one line each"
    assert found[0]["api_key"] == "[redacted]"
    assert len(str(found[2]["value"])) == 200
    assert "ValueError" in str(found[4]["exception"])


async def test_a_request_is_a_line_with_its_route_and_not_with_what_was_in_it(
    api: Api, capsys: Captured
) -> None:
    with logging_as_json(logging.INFO):
        await api.get("/v1/tasks/bg_secret-id")
        await api.get("/v1/nix?token=hunter2")
    logged = capsys.readouterr().err
    found = [line for line in lines(logged) if line["event"] == "request"]
    assert [(line["method"], line["route"], line["status"]) for line in found] == [
        ("GET", "/v1/tasks/{id}", 404),
        ("GET", "none", 404),
    ]
    assert found[0]["caller"] == api.token.split("_")[1]
    assert "hunter2" not in logged
    assert "bg_secret-id" not in logged
    assert api.token not in logged


async def test_metrics_count_requests_by_route(api: Api) -> None:
    await api.get("/v1/tasks/bg_one")
    await api.get("/v1/tasks/bg_two")
    await api.client.request("BREW", "/v1/me")
    task = await api.held_task("bg_held")
    text = (await api.get("/metrics")).text
    assert (
        'backburner_http_requests_total{method="GET",route="/v1/tasks/{id}",status="404"} 2.0'
        in text
    )
    assert 'method="other"' in text
    assert 'backburner_active_tasks{kind="tool",state="running"} 1.0' in text
    assert "bg_one" not in text
    await api.let_go(task)


class Recorded(NonRecordingSpan):
    """A span, as the API has it, that can be looked at."""

    def __init__(self, kept: list["Recorded"]) -> None:
        super().__init__(INVALID_SPAN_CONTEXT)
        self.name = ""
        self.attributes: dict[str, Any] = {}
        kept.append(self)

    def update_name(self, name: str) -> None:
        self.name = name

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value


class Recorder(NoOpTracer):
    """What an SDK would be."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []
        self.parents: list[object] = []

    @contextmanager
    def start_as_current_span(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, name: str, context: Any = None, **_: Any
    ) -> Generator[Recorded]:
        self.parents.append(get_current_span(context).get_span_context().trace_id)
        yield Recorded(self.spans)


async def test_a_request_is_a_span_of_the_caller_s_trace(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(observe, "_tracer", recorder)
    trace = "0af7651916cd43dd8448eb211c80319c"
    await api.get("/v1/tasks/bg_one", headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    (span,) = recorder.spans
    assert span.name == "GET /v1/tasks/{id}"
    assert span.attributes == {
        "http.request.method": "GET",
        "http.route": "/v1/tasks/{id}",
        "http.response.status_code": 404,
    }
    assert recorder.parents == [int(trace, 16)]


async def test_health_tells_live_from_ready(api: Api) -> None:
    ready = await api.client.get("/healthz")
    assert (ready.status_code, ready.json()) == (
        200,
        {"live": True, "ready": True, "reason": None},
    )
    api.server.service.closing = True
    ending = await api.client.get("/healthz")
    assert (ending.status_code, ending.json()["live"], ending.json()["ready"]) == (503, True, False)
    assert (await api.client.get("/healthz/live")).status_code == 200
