"""Logging a browser in: a code that works once, and a cookie that is a token of its own."""

import hmac
import secrets
from collections.abc import Mapping

from starlette.responses import Response

from backburner.model.errors import NotAllowed
from backburner.model.tokens import Token
from backburner.runtime.tokens import TokenService
from backburner.serve.settings import Binding

LASTS_S = 30 * 86400.0
"""How long a browser stays logged in, if the token that it came with lasts as long."""

HEADER = "x-backburner"
"""Only a script of our own page can send it: others would have to ask the server first."""


class Logins:
    """The codes of one server; they live as long as it does, and each works once."""

    def __init__(self, tokens: TokenService, binding: Binding, port: int) -> None:
        self._tokens = tokens
        self._binding = binding
        self._codes: dict[str, Token] = {}
        # Browsers keep the cookies of all ports of a machine together.
        self.cookie = f"{'__Host-' if binding.secure else ''}backburner-{port}"

    def new_code(self, token: Token) -> str:
        """A code for whoever holds this token."""
        code = secrets.token_urlsafe(32)
        self._codes[code] = token
        return code

    def take(self, code: str) -> Token | None:
        """The token that a code stands for, this once."""
        found: str | None = None
        for known in self._codes:  # all of them, so that the time says nothing
            if hmac.compare_digest(known.encode(), code.encode(errors="replace")):
                found = known
        return None if found is None else self._codes.pop(found)

    async def let_in(self, token: Token, response: Response) -> bool:
        """Give a browser a token of its own, in a cookie that no script can read.

        False where the token that it came with has ended meanwhile.
        """
        try:
            text = await self._tokens.trade(token, "a browser", LASTS_S)
        except NotAllowed:
            return False
        response.set_cookie(
            self.cookie,
            text,
            max_age=int(LASTS_S),
            path="/",
            secure=self._binding.secure,
            httponly=True,
            samesite="strict",
        )
        return True

    def shown(self, cookies: Mapping[str, str]) -> str | None:
        """The token that a browser shows."""
        return cookies.get(self.cookie)

    def forget(self, response: Response) -> None:
        """Take the cookie back."""
        response.delete_cookie(
            self.cookie, path="/", secure=self._binding.secure, httponly=True, samesite="strict"
        )
