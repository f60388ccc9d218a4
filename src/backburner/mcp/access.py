"""Who may come in over HTTP, and as whom: the one place where an Authorization header is judged.

The server is bound to this machine. Without tokens whoever reaches it is the person who started
it, and a header says nothing; with tokens nobody comes in without one, and each request may do what
its token allows.
"""

import asyncio
import json
from typing import TYPE_CHECKING

from backburner.model.address import LOOPBACK, is_loopback
from backburner.model.errors import NotAllowed, UsageError
from backburner.model.policy import Role
from backburner.model.tokens import text_in
from backburner.model.values import value
from backburner.runtime.home import owner_here

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from backburner.model.tokens import Token
    from backburner.runtime.tokens import TokenService

_ADMISSION = "backburner.admission"
"""Where a request carries it."""

_LOOK_AGAIN_S = 2.0
"""A stream can stay open for hours; its token may be taken back."""


@value
class Admission:
    """What a request may touch."""

    owner: str
    session: str | None
    """The one session that it is for; None for that of the client."""
    role: Role


def admission_of(request: object | None) -> Admission:
    """What a request may touch. Over pipes there is none, and it is from who started us."""
    scope: dict[str, Admission] = getattr(request, "scope", None) or {}
    return scope.get(_ADMISSION) or Admission(owner_here(), None, Role.USER)


class TokenDoor:
    """Lets in who shows a token of this home, for as long as it opens anything."""

    def __init__(self, app: "ASGIApp", tokens: "TokenService") -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            token = await self._tokens.check(_shown(scope))
        except NotAllowed:
            await _refuse(send)
            return
        scope[_ADMISSION] = Admission(token.owner, token.session, token.role)
        scope["user"] = _user(token)
        serving = asyncio.ensure_future(self._app(scope, receive, send))
        try:
            while not (await asyncio.wait((serving,), timeout=_LOOK_AGAIN_S))[0]:
                if not await self._tokens.still_holds(token.id):
                    return
            await serving
        finally:
            serving.cancel()
            await asyncio.wait((serving,))


def _shown(scope: "Scope") -> str:
    for name, said in scope["headers"]:
        if name == b"authorization":
            return text_in(said.decode("latin-1"))
    return ""


def _user(token: "Token") -> object:
    """By which the library knows that a connection is used by those who opened it."""
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=token.id, scopes=[]))


async def _refuse(send: "Send") -> None:
    problem = {
        "title": "Unauthorized",
        "status": 401,
        "detail": "this server wants a token: Authorization: Bearer TOKEN",
        "remedy": "make one with: backburner token create",
    }
    body = json.dumps(problem).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"www-authenticate", b"Bearer"),
    ]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def check_bound(host: str) -> str:
    """The address to listen on. UsageError where others than this machine could reach it."""
    if not is_loopback(host):
        raise UsageError(
            f"MCP is not served on {host}: it is not encrypted, and whoever reaches it could run"
            " commands as you",
            remedy=f"leave the address out, or use {LOOPBACK} and a tunnel",
        )
    return LOOPBACK if host == "localhost" else host
