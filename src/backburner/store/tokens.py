"""What every store promises of tokens; a part of `backburner.store.protocol.Store`."""

from typing import Protocol

from backburner.model.clock import Instant
from backburner.model.tokens import Token


class TokenStore(Protocol):
    """The durable record of who may call the HTTP API."""

    async def add_token(self, token: Token) -> bool:
        """From now on it opens what it says. False, and nothing, where its parent was revoked."""
        ...

    async def token(self, token_id: str) -> Token | None:
        """One token by its name, also one that opens nothing any more."""
        ...

    async def tokens(self) -> list[Token]:
        """All of them, oldest first."""
        ...

    async def token_used(self, token_id: str, at: Instant) -> None:
        """It was shown at this time."""
        ...

    async def revoke_token(self, token_id: str) -> Token | None:
        """It opens nothing any more, and neither do those whose parent it is.

        None where there is none, or it was revoked before.
        """
        ...

    async def forget_tokens(self, before: Instant) -> int:
        """Remove those that were revoked or ran out before this time. Answers how many."""
        ...
