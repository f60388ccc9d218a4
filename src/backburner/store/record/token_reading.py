"""Reading tokens: the order of their columns, and the queries that only read."""

from typing import Any

from backburner.model.policy import Role
from backburner.model.tokens import Token
from backburner.store.record.transaction import Rows

COLUMNS = """id, owner, role, session, label, digest, created_at, expires_at, last_used_at,
    revoked_at, parent"""
"""For a SELECT and for a RETURNING, in the order of the fields of a Token."""


def to_token(row: tuple[Any, ...]) -> Token:
    """A row of COLUMNS as a token."""
    token_id, owner, role, *rest = row
    return Token(token_id, owner, Role(role), *rest)


class TokenReader(Rows):
    """See `backburner.store.tokens.TokenStore` for what each method promises."""

    def token(self, token_id: str) -> Token | None:
        """See TokenStore.token."""
        rows = self._rows("token_get", id=token_id)
        return to_token(rows[0]) if rows else None

    def tokens(self) -> list[Token]:
        """See TokenStore.tokens."""
        return [to_token(row) for row in self._rows("tokens")]
