"""A line of the log, a span and a count for each request: names of routes, not what was in them."""

import logging
import time
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import SpanKind, Status, StatusCode
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backburner.serve.measures import Measures

_log = logging.getLogger("backburner.serve.requests")
_tracer = trace.get_tracer("backburner.serve")

_SERVER_ERROR = 500
_QUIET = ("/healthz", "/healthz/live", "/metrics")
"""Asked again and again by machines."""


class Observe:
    """The outermost layer."""

    def __init__(self, app: ASGIApp, measures: Measures) -> None:
        self._app = app
        self._measures = measures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        scope.setdefault("state", {})
        answer: dict[str, Any] = {"status": 500, "after": None}

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer["status"] = message["status"]
                answer["after"] = time.monotonic() - began
            await send(message)

        context = propagate.extract(dict(Headers(scope=scope)))
        with _tracer.start_as_current_span(
            scope["method"], context=context, kind=SpanKind.SERVER
        ) as span:
            try:
                await self._app(scope, receive, noted)
            finally:
                route = _route(scope)
                span.update_name(f"{scope['method']} {route}")
                span.set_attribute("http.request.method", scope["method"])
                span.set_attribute("http.route", route)
                span.set_attribute("http.response.status_code", answer["status"])
                if answer["status"] >= _SERVER_ERROR:
                    span.set_status(Status(StatusCode.ERROR))
                self._note(scope, route, answer, time.monotonic() - began)

    def _note(self, scope: Scope, route: str, answer: dict[str, Any], took_s: float) -> None:
        method, status = _method(scope["method"]), answer["status"]
        self._measures.requests.labels(method, route, str(status)).inc()
        self._measures.seconds.labels(method, route).observe(
            took_s if answer["after"] is None else answer["after"]
        )
        _log.log(
            logging.DEBUG if route in _QUIET else logging.INFO,
            "request",
            extra={
                "method": method,
                "route": route,
                "status": status,
                "ms": round(took_s * 1000, 1),
                # Not called a token: that would be hidden, and it is only the name of one.
                "caller": scope["state"].get("token"),
            },
        )


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _method(given: str) -> str:
    """What a client calls it may be anything, and each would be a number of its own."""
    return given if given in _METHODS else "other"


def _route(scope: Scope) -> str:
    """The pattern that fitted."""
    return getattr(scope.get("route"), "path", None) or "none"
