"""Logging a browser in and out."""

from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from backburner.model.errors import NotAllowed, UsageError
from backburner.model.tokens import Token
from backburner.serve.access import Looks
from backburner.serve.models.overview import Login, Me
from backburner.serve.problems import unauthenticated
from backburner.serve.rates import client_of
from backburner.serve.service import Service, service_of

router = APIRouter(prefix="/v1", tags=["login"])


@router.post("/login", response_model=Me)
async def login(request: Request, response: Response, wish: Login) -> dict[str, object]:
    """Trade a one-time code, or a token, for the cookie of a browser."""
    service = service_of(request)
    token = await _shown(service, wish)
    if token is not None:
        service.measures.count(token.id)
    if token is None or not await service.logins.let_in(token, response):
        service.measures.guessed(client_of(request.scope))
        raise unauthenticated("this code or token opens nothing; a code works once")
    return {"owner": token.owner, "role": token.role, "session": token.session}


async def _shown(service: Service, wish: Login) -> Token | None:
    if (wish.code is None) == (wish.token is None):
        raise UsageError("there is exactly one of code and token")
    if wish.code is not None:
        return service.logins.take(wish.code)
    try:
        return await service.tokens.check(wish.token or "")
    except NotAllowed:
        return None


@router.post("/logout", status_code=HTTPStatus.NO_CONTENT)
async def logout(who: Looks, request: Request, response: Response) -> None:
    """The cookie of this browser opens nothing any more; a bearer token stays as it is."""
    if "authorization" not in request.headers:
        await who.service.tokens.revoke(who.token.id)
    who.service.logins.forget(response)
