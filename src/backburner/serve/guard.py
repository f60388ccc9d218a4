"""What stands before everything: names, origins, sizes and numbers of requests, safe headers.

A page of somebody else's must not reach the server through a browser of its user: not by a name
that leads here all of a sudden (DNS rebinding), and not by a form or a script (CSRF).
"""

import asyncio
import contextlib
import ipaddress
from http import HTTPStatus
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backburner.serve.access import SLASH
from backburner.serve.problems import Refused, not_found
from backburner.serve.settings import Binding

_SLASH = b"%" + SLASH.encode().hex().encode()

_PASSED = 16
"""Times the largest body."""

_API_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Content-Security-Policy": _API_POLICY,
    "Cache-Control": "no-store",
}


class Guard:
    """Lets through what may come through."""

    def __init__(self, app: ASGIApp, binding: Binding) -> None:
        self._app = app
        self._binding = binding
        self._names = {"localhost", *(name.lower().rstrip(".") for name in binding.names)}
        self._busy = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        begun = False

        async def safely(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
                if self._binding.tls:
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            await send(message)

        try:
            self._check(Headers(scope=scope))
            if not _keep_slashes(scope):
                await not_found()(scope, receive, safely)
                return
            await self._counted(scope, self._bounded(scope, receive), safely)
        except Refused as error:
            if begun:
                raise
            if error.status is HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                await self._let_pass(receive)
            await error.response()(scope, receive, safely)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Streams are counted by the hub; they last long and cost little."""
        if scope["path"].endswith("/events"):
            await self._app(scope, receive, send)
            return
        if self._busy >= self._binding.load.requests:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "overloaded",
                "as many requests are carried out as this server takes on",
                remedy="try again in a moment",
                headers={"Retry-After": "1"},
            )
        self._busy += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._busy -= 1

    def _check(self, headers: Headers) -> None:
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self._is_ours(host):
            raise Refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "wrong_host",
                "the request is addressed to a name that this server does not have",
                remedy="start it with --allow-host NAME if the name is right",
            )
        origin = headers.get("origin")
        if origin is not None and not _same(origin, host):
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "cross_origin",
                "the request comes from a page of another site",
                remedy="open the dashboard at the address of the server itself",
            )
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length[:18]) > self._most:
            raise self._too_large()

    @property
    def _most(self) -> int:
        return self._binding.load.body_bytes

    def _is_ours(self, host: str) -> bool:
        """A name that was agreed on, or an address: those cannot be made to lead elsewhere."""
        if "@" in host:
            return False
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
            if name in self._names:
                return True
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """A body that says nothing of its length is counted as it comes, and comes in time."""
        taken = 0
        until = asyncio.get_running_loop().time() + self._binding.load.body_s

        async def bounded() -> Message:
            nonlocal taken
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise Refused(
                    HTTPStatus.REQUEST_TIMEOUT,
                    "body_timeout",
                    f"the body did not come within {self._binding.load.body_s:g} s",
                    remedy="send it at once",
                ) from None
            taken += len(message.get("body", b""))
            if taken > self._most:
                raise self._too_large()
            return message

        return bounded if scope["method"] not in ("GET", "HEAD") else receive

    async def _let_pass(self, receive: Receive) -> None:
        """Who still sends hears no answer: take in the rest, unless it is out of all proportion."""
        passed = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._binding.load.body_s):
                while passed < _PASSED * self._most:
                    message = await receive()
                    if message["type"] != "http.request" or not message.get("more_body"):
                        return
                    passed += len(message.get("body", b""))

    def _too_large(self) -> Refused:
        return Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too_large",
            f"the body is larger than {self._most} bytes",
            remedy="put what is large into a file that the task reads",
        )


def _same(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _keep_slashes(scope: Scope) -> bool:
    """Names may hold a `/`, sent as %2F: routes must not take it for the end of the name.

    False where the path cannot be a text.
    """
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    if b"%00" in raw:
        return False
    marked = raw.partition(b"?")[0].replace(b"%2F", _SLASH).replace(b"%2f", _SLASH)
    try:
        scope["path"] = unquote_to_bytes(marked).decode()
    except UnicodeDecodeError:
        return False
    return scope["path"].startswith("/")
