"""The changes of what outlives a task: queues, channels, and what a session wishes to be told."""

from collections.abc import Collection

from backburner.model import clock
from backburner.model.channels import Channel
from backburner.model.errors import Conflict
from backburner.model.signals import SignalKind
from backburner.store.protocol import Scope
from backburner.store.record.changes import Changes
from backburner.store.record.rows import to_json
from backburner.store.record.transaction import Statements

_REMEMBERED = 86400 * clock.SECOND
"""That a session has ended, though it has no tasks any more that could tell it anything."""


class SettingChanges(Changes):
    """See `backburner.store.protocol.Store` for what each method promises."""

    async def set_queue(self, name: str, width: int) -> None:
        await self._count("queue_put", name=name, width=width)

    async def pause_queue(self, name: str, *, paused: bool) -> bool:
        return bool(await self._count("queue_pause", name=name, paused=paused))

    async def remove_queue(self, name: str) -> bool:
        def operation(run: Statements) -> bool:
            if run.rows("queue_in_use", name=name):
                return False
            run.rows("queue_forget_tasks", name=name)
            return bool(run.rows("queue_remove", name=name))

        return await self._writer.write(operation)

    async def set_owner_limit(self, owner: str | None, limit: int | None) -> None:
        if limit is None:
            await self._count("owner_limit_clear", owner=owner or "")
        else:
            await self._count("owner_limit_put", owner=owner or "", running=limit)

    async def add_channel(self, channel: Channel) -> None:
        added = await self._count_of(
            channel.owner,
            "channel_put",
            name=channel.name,
            owner=channel.owner,
            session=channel.session,
            kind=channel.kind,
            target=channel.target,
            kinds=None if channel.kinds is None else to_json(sorted(channel.kinds)),
            allow_private=channel.allow_private,
            secret=channel.secret,
        )
        if not added:
            raise Conflict(
                f"there is a channel {channel.name!r} already",
                remedy="remove it first, or choose another name",
            )

    async def remove_channel(self, name: str, owner: str) -> bool:
        def operation(run: Statements) -> bool:
            if not run.rows("channel_remove", name=name, owner=owner):
                return False
            run.rows(
                "channel_drop_signals", name=name, owner=owner, reason="the channel was removed"
            )
            return True

        return await self._writer.write(operation, owner=owner)

    async def pause_channel(self, name: str, owner: str, reason: str) -> bool:
        def operation(run: Statements) -> bool:
            if not run.rows("channel_pause", name=name, owner=owner, reason=reason):
                return False
            run.rows("channel_drop_signals", name=name, owner=owner, reason=reason)
            return True

        return await self._writer.write(operation, owner=owner)

    async def resume_channel(self, name: str, owner: str) -> bool:
        resumed = await self._count_of(owner, "channel_pause", name=name, owner=owner, reason=None)
        return bool(resumed)

    async def end_session(self, scope: Scope) -> None:
        def operation(run: Statements) -> None:
            where = {"owner": scope.owner, "session": scope.session}
            now = run.now()
            run.rows("sessions_forget", before=now - _REMEMBERED)
            run.rows("session_end", now=now, **where)
            run.rows("session_drop_signals", **where)

        await self._writer.write(operation, owner=scope.owner)

    async def wish(self, scope: Scope, kinds: Collection[SignalKind] | None) -> None:
        where = {"owner": scope.owner, "session": scope.session}
        if kinds is None:
            await self._count_of(scope.owner, "wish_clear", **where)
        else:
            await self._count_of(scope.owner, "wish_set", kinds=to_json(sorted(kinds)), **where)
