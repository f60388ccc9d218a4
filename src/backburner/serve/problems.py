"""Errors as problem details (RFC 9457): every one of them, whoever raised it.

What does not exist and what belongs to somebody else are the same bytes.
"""

import json
import logging
import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backburner.model.errors import SPELLINGS, BackburnerError
from backburner.model.redaction import redact_text
from backburner.serve.models.problem import MEDIA_TYPE

_log = logging.getLogger("backburner.serve")

_SHOWN_ERRORS = 10


class Refused(Exception):
    """A request that is refused by the server itself, and not by what it asks for."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        detail: str,
        *,
        remedy: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.remedy = remedy
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """As an answer."""
        return problem(
            self.status, self.code, self.detail, remedy=self.remedy, headers=self.headers
        )


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    remedy: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """One problem as an answer."""
    body = {
        "type": f"urn:backburner:problem:{code}",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
        "code": code,
        "remedy": remedy,
    }
    # With escapes: a text that came from outside may hold what no encoding can.
    return Response(json.dumps(body), status, headers=headers, media_type=MEDIA_TYPE)


def not_found() -> Response:
    """The one answer for what is not there and for what is not the caller's."""
    return problem(
        HTTPStatus.NOT_FOUND,
        "not_found",
        "there is no such thing for this token",
        remedy="check the address and the id; GET /v1/me says who the token stands for",
    )


def unauthenticated(detail: str) -> Refused:
    """Nobody knows who asks."""
    return Refused(
        HTTPStatus.UNAUTHORIZED,
        "unauthenticated",
        detail,
        remedy="send a token: Authorization: Bearer …; backburner token create makes one",
        headers={"WWW-Authenticate": 'Bearer realm="backburner"'},
    )


_PLAIN = {
    HTTPStatus.METHOD_NOT_ALLOWED: (
        "method_not_allowed",
        "this address does not take that method",
        "see /openapi.json",
    ),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ("media_type", "the body is not JSON", "send JSON"),
    HTTPStatus.BAD_REQUEST: ("bad_request", "the request cannot be read", "send JSON"),
}


async def on_backburner_error(_: Request, error: Exception) -> Response:
    """What the handles refuse; the one table of codes says with which status."""
    assert isinstance(error, BackburnerError)
    status = SPELLINGS[error.code].http_status
    if status == HTTPStatus.NOT_FOUND:
        return not_found()
    headers = {"Retry-After": "5"} if status in (429, 503) else None
    return problem(
        status,
        error.code,
        redact_text(error.message),
        remedy=redact_text(error.remedy),
        headers=headers,
    )


async def on_refused(_: Request, error: Exception) -> Response:
    """What the server itself refuses."""
    assert isinstance(error, Refused)
    return error.response()


async def on_http_error(_: Request, error: Exception) -> Response:
    """What the framework refuses."""
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, Refused):  # what was raised while it read the body
        return error.__cause__.response()
    if error.status_code == HTTPStatus.NOT_FOUND:
        return not_found()
    known = _PLAIN.get(HTTPStatus(error.status_code))
    code, detail, remedy = known or ("http", HTTPStatus(error.status_code).phrase, "")
    return problem(error.status_code, code, detail, remedy=remedy, headers=error.headers)


async def on_invalid(_: Request, error: Exception) -> Response:
    """A request that does not fit its description. What was given is not repeated."""
    assert isinstance(error, RequestValidationError)
    lines = [_line(each) for each in error.errors()[:_SHOWN_ERRORS]]
    return problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "usage",
        "; ".join(lines) or "the request does not fit its description",
        remedy="see /openapi.json",
    )


def _line(error: Mapping[str, Any]) -> str:
    where = ".".join(str(part)[:40] for part in error.get("loc", ()))
    return f"{where}: {str(error.get('msg', ''))[:200]}"


async def on_unforeseen(_: Request, error: Exception) -> Response:
    """What nobody foresaw: the caller gets a reference, and the log explains it."""
    reference = secrets.token_hex(6)
    _log.error("a request failed, reference %s", reference, exc_info=error)
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal",
        f"something went wrong in the server; its log explains reference {reference}",
        remedy="try again; if it stays, look into the log of the server",
    )


class LastNet:
    """The framework raises anew what it has answered: that is dealt with, and goes no further."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        begun = whole = False

        async def noted(message: Message) -> None:
            nonlocal begun, whole
            begun = True
            whole = message["type"] == "http.response.body" and not message.get("more_body")
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Refused:
            raise
        except Exception as error:
            if whole:
                return
            if begun or scope["type"] != "http":
                raise  # the connection is cut, so that nobody takes half an answer for all of it
            foreseen = isinstance(error, BackburnerError)  # of a layer that is before the routes
            answer = on_backburner_error if foreseen else on_unforeseen
            await (await answer(Request(scope), error))(scope, receive, send)
