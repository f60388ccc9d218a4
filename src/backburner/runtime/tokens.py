"""Who calls: tokens are made, shown once, checked, revoked; the local user has one in a file."""

import contextlib
import os
import secrets
from dataclasses import replace

from backburner.model import clock
from backburner.model.errors import NotAllowed, NotFound, StoreUnusable, UsageError
from backburner.model.home import Home
from backburner.model.limits import DEFAULT_OWNER, LONGEST_RUNTIME_S
from backburner.model.policy import Policy, Role
from backburner.model.session import check_name
from backburner.model.tokens import (
    LABEL_MAX_CHARS,
    NOBODY,
    USED_EVERY_S,
    Token,
    name_in,
    new_token,
)
from backburner.store.protocol import Store

_USED_EVERY = round(USED_EVERY_S * clock.SECOND)

_REMEMBERED = 30 * 86400 * clock.SECOND
"""What opens nothing any more is listed for so long."""

_LONGEST = 4096


class TokenService:
    """The tokens of one home."""

    def __init__(self, store: Store, home: Home) -> None:
        self._store = store
        self._home = home

    async def create(
        self,
        label: str,
        *,
        owner: str = DEFAULT_OWNER,
        role: str = Role.USER.value,
        session: str | None = None,
        lasts_s: float | None = None,
    ) -> tuple[Token, str]:
        """A new token, and its text, which nobody can show again. UsageError."""
        for name in (owner, *(() if session is None else (session,))):
            if not name:
                raise UsageError("a session and its owner need a name")
            check_name(name)
        check_name(label)
        if len(label) > LABEL_MAX_CHARS:
            raise UsageError(f"a label has {LABEL_MAX_CHARS} characters at the most")
        if lasts_s is not None and not 0 < lasts_s <= LONGEST_RUNTIME_S:
            raise UsageError("a token lasts more than 0 seconds, and less than 100 years")
        now = self._store.now()
        token, text = new_token(
            owner,
            Policy.of("normal", role).role,
            session=session,
            label=label,
            now=now,
            expires_at=None if lasts_s is None else now + round(lasts_s * clock.SECOND),
        )
        await self._store.forget_tokens(now - _REMEMBERED)
        await self._store.add_token(token)
        return token, text

    async def trade(self, token: Token, label: str, lasts_s: float) -> str:
        """The text of a token of its own for whoever holds this one.

        It opens the same, and ends at the latest when this one does. NotAllowed where this one has
        ended meanwhile.
        """
        now = self._store.now()
        holds = await self.still_holds(token.id)
        ends = now + round(lasts_s * clock.SECOND)
        made, text = new_token(
            token.owner,
            token.role,
            session=token.session,
            label=label,
            now=now,
            expires_at=ends if token.expires_at is None else min(ends, token.expires_at),
        )
        await self._store.forget_tokens(now - _REMEMBERED)
        child = replace(made, parent=token.parent or token.id)
        if not holds or not await self._store.add_token(child):
            raise NotAllowed("this token opens nothing", remedy="use another token")
        return text

    async def check(self, text: str) -> Token:
        """The token of this text. NotAllowed says no more than that there is none."""
        now = self._store.now()
        name = name_in(text) if len(text) <= _LONGEST else None
        found = None if name is None else await self._store.token(name)
        fits = (found or NOBODY).fits(text)
        if found is None or not fits or not found.holds(now):
            raise NotAllowed(
                "this token opens nothing",
                remedy="make one with: backburner token create",
            )
        if found.last_used_at is None or abs(now - found.last_used_at) > _USED_EVERY:
            await self._store.token_used(found.id, now)
        return found

    async def still_holds(self, token_id: str) -> bool:
        """Whether one that was checked before still opens anything."""
        found = await self._store.token(token_id)
        return found is not None and found.holds(self._store.now())

    async def listed(self) -> list[Token]:
        """All tokens of this home, oldest first."""
        return await self._store.tokens()

    async def revoke(self, reference: str) -> Token:
        """Take one back, by its name or by enough of it. NotFound, UsageError."""
        fitting = [
            token
            for token in await self._store.tokens()
            if token.id.startswith(reference) and reference
        ]
        exact = [token for token in fitting if token.id == reference]
        open_ones = exact or [token for token in fitting if token.revoked_at is None]
        if not open_ones:
            raise NotFound(f"no token {reference[:60]!r}", remedy="backburner token ls lists them")
        if len(open_ones) > 1:
            raise UsageError(
                f"{reference!r} fits {len(open_ones)} tokens", remedy="give more of the name"
            )
        return await self._store.revoke_token(open_ones[0].id) or open_ones[0]

    # The local user

    async def local(self) -> str:
        """The token of whoever can read the home, from its file; made where it opens nothing."""
        text = _read(self._home.token)
        if text is not None:
            with contextlib.suppress(NotAllowed):
                await self.check(text)
                return text
        _, text = await self.create("the file `token` in the home", role=Role.ADMIN.value)
        _put(self._home.token, text)
        return text


def _read(path: str) -> str | None:
    """What the file holds, if nobody else can read it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, encoding="ascii", errors="replace") as file:
        return file.read(_LONGEST).strip() if os.fstat(fd).st_mode & 0o077 == 0 else None


def _put(path: str, text: str) -> None:
    """By rename, so that nobody reads half of it; readable for the user alone from the start."""
    new = f"{path}.{secrets.token_hex(8)}"
    try:
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(f"{text}\n")
        os.rename(new, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise StoreUnusable(
            f"{path} cannot be written: {error.strerror}",
            remedy="free some space, or choose another home",
        ) from error
