"""Who asks, and what they may: the door before every route, and what the routes ask it.

A caller is known by a bearer token, or by the cookie of a browser that logged in. With the cookie,
what changes something needs a header that only our own page can send.
"""

from collections.abc import Awaitable, Callable, Collection
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Path, Request
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ASGIScope

from backburner.model.errors import NotAllowed, NotFound
from backburner.model.policy import Action, Policy
from backburner.model.tokens import Token, text_in
from backburner.model.values import value
from backburner.serve.login import HEADER
from backburner.serve.models.base import NAME_MAX_CHARS
from backburner.serve.problems import Refused, unauthenticated
from backburner.serve.rates import client_of
from backburner.serve.service import Service
from backburner.store.protocol import Scope

if TYPE_CHECKING:
    from backburner.app import Session, Task

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

SLASH = "\0"
"""Stands for a `/` inside a name, while routes are looked for; see `guard`."""


@value
class Caller:
    """Whoever sent a request."""

    token: Token
    service: Service

    @property
    def scope(self) -> Scope:
        """What exists for them."""
        return Scope(self.token.owner, self.token.session)

    @property
    def policy(self) -> Policy:
        """What they may do."""
        return Policy.of("normal", self.token.role.value)

    @property
    def is_admin(self) -> bool:
        """Whether they see to the whole home."""
        return self.policy.allows(Action.STOP_OTHERS) and self.token.session is None

    def session(self, name: str) -> "Session":
        """One of their sessions. NotFound for one that their token does not cover."""
        if self.token.session not in (None, name):
            raise NotFound("no such session")
        return self.service.backburner.session(
            name, owner=self.token.owner, role=self.token.role.value
        )

    async def task(self, task_id: str) -> "Task":
        """One of their tasks, by its whole id. NotFound."""
        from backburner.app.task import Task

        backburner = self.service.backburner
        record = await backburner.tasks.get(task_id, self.scope)
        return Task(backburner, record, policy=self.policy)


class Door:
    """Stands before every route: who is not known does not even get to send a body."""

    def __init__(self, app: ASGIApp, service: Service, public: Collection[str]) -> None:
        self._app = app
        self._service = service
        self._public = public

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope["path"] not in self._public:
            scope["state"]["caller"] = await _known(Request(scope), self._service)
        await self._app(scope, receive, send)


async def caller(request: Request) -> Caller:
    """Whoever sent this request, as the door has found."""
    found = request.state.caller
    assert isinstance(found, Caller)
    return found


async def _known(request: Request, service: Service) -> Caller:
    given = request.headers.get("authorization")
    if given is not None:
        text = text_in(given)
    else:
        text = service.logins.shown(request.cookies) or ""
        if text and request.method not in SAFE:
            _check_ours(request)
    if not text:
        raise unauthenticated("there is no token in the request")
    try:
        token = await service.tokens.check(text)
    except NotAllowed:
        service.measures.guessed(client_of(request.scope))
        raise unauthenticated("this token opens nothing") from None
    request.state.token = token.id
    service.measures.count(token.id)
    return Caller(token, service)


def _check_ours(request: Request) -> None:
    """That the request of a browser comes from our own page. `guard` has compared the origin."""
    if "origin" not in request.headers or request.headers.get(HEADER) != "1":
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "cross_origin",
            "a browser that is logged in by its cookie has to send Origin and X-Backburner: 1",
            remedy="send both, or use a bearer token",
        )


def may(action: Action) -> Callable[[Caller], Awaitable[Caller]]:
    """A caller who may do this. Asked before anything is looked up, so it says nothing of it."""

    async def allowed(who: Looks) -> Caller:
        who.policy.check(action)
        return who

    return allowed


Looks = Annotated[Caller, Depends(caller)]
Starts = Annotated[Caller, Depends(may(Action.START))]
Stops = Annotated[Caller, Depends(may(Action.STOP))]
Sends = Annotated[Caller, Depends(may(Action.SEND))]
Schedules = Annotated[Caller, Depends(may(Action.SCHEDULE))]
Takes = Annotated[Caller, Depends(may(Action.TAKE))]


async def _admin(who: Looks) -> Caller:
    if not who.is_admin:
        raise NotAllowed("only an admin of all sessions may", remedy="use another token")
    return who


Administers = Annotated[Caller, Depends(_admin)]


def _session_name(
    session: Annotated[
        str, Path(min_length=1, max_length=NAME_MAX_CHARS, description="The name of a session.")
    ],
) -> str:
    return session.replace(SLASH, "/")


SessionName = Annotated[str, Depends(_session_name)]
TaskId = Annotated[str, Path(min_length=1, max_length=64, description="The id of a task.")]
