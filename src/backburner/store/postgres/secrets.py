"""What lies apart from the rows that name it: environments of starts, keys of webhooks.

Written by the database itself, whichever statement brings it (sql/0003_secrets.sql), and removed by
it with what it belongs to.
"""

from collections.abc import Collection

from backburner.store.record.changes import Changes
from backburner.store.record.rows import to_json


class Secrets(Changes):
    """See `backburner.store.protocol.Store` for what each method promises."""

    async def secret(self, name: str) -> str | None:
        rows = await self._look(lambda read: read.rows("secret_get", name=name))
        return rows[0][0] if rows else None

    async def forget_secrets(self, names: Collection[str]) -> int:
        return await self._count("secrets_forget", names=to_json(sorted(names)))
