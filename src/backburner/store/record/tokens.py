"""The changes of tokens."""

from backburner.model.clock import Instant
from backburner.model.tokens import Token
from backburner.store.record.changes import Changes
from backburner.store.record.token_reading import to_token


class TokenChanges(Changes):
    """See `backburner.store.tokens.TokenStore` for what each method promises."""

    async def token(self, token_id: str) -> Token | None:
        return await self._look(lambda read: read.token(token_id))

    async def tokens(self) -> list[Token]:
        return await self._look(lambda read: read.tokens())

    async def add_token(self, token: Token) -> bool:
        added = await self._count(
            "token_insert",
            id=token.id,
            owner=token.owner,
            role=token.role.value,
            session=token.session,
            label=token.label,
            parent=token.parent,
            digest=token.digest,
            created_at=token.created_at,
            expires_at=token.expires_at,
        )
        return added == 1

    async def token_used(self, token_id: str, at: Instant) -> None:
        await self._count("token_used", id=token_id, at=at)

    async def revoke_token(self, token_id: str) -> Token | None:
        rows = await self._writer.write(
            lambda run: run.rows("token_revoke", id=token_id, now=run.now())
        )
        revoked = [to_token(row) for row in rows]
        return next((token for token in revoked if token.id == token_id), None)

    async def forget_tokens(self, before: Instant) -> int:
        return await self._count("tokens_forget", before=before)
