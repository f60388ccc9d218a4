"""The door: a home that is open, its sessions, queues and channels."""

import asyncio
import os
from collections.abc import Collection
from types import TracebackType
from typing import TYPE_CHECKING, Self

from backburner.app.session import Session
from backburner.model.channels import Channel
from backburner.model.errors import UsageError
from backburner.model.home import Home, resolve_home
from backburner.model.limits import (
    DEFAULT_OWNER,
    DEFAULT_SESSION,
    Settings,
)
from backburner.model.order import Queue
from backburner.model.session import check_name
from backburner.model.signals import SignalKind
from backburner.runtime.feed import Feed
from backburner.runtime.queues import QueueService
from backburner.runtime.retention import Rule, prune
from backburner.runtime.signals import SignalService
from backburner.runtime.succession import making_way
from backburner.runtime.tasks import TaskService
from backburner.store.protocol import Scope, Store
from backburner.store.sqlite.store import open_store
from backburner.work.process.identity import boot_id

if TYPE_CHECKING:
    from backburner.runtime.channels import ChannelService


class Backburner:
    """Background work in one home, open inside `async with Backburner.open()`."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self.home = home
        self.settings = settings
        self._store: Store | None = None
        self._feed: Feed | None = None

    @classmethod
    def open(
        cls, home: str | os.PathLike[str] | None = None, *, settings: Settings | None = None
    ) -> Self:
        """The Backburner in this home folder: given, or BACKBURNER_HOME, or the user's own."""
        return cls(Home(resolve_home(home)), settings or settings_from_environment())

    async def __aenter__(self) -> Self:
        store = open_store(self.home.root, boot_id(), lambda: making_way(self.home))
        self._store = store
        self._feed = Feed(store)
        self.tasks = TaskService(store, self.home, self.settings, self._feed)
        self.inbox = SignalService(store, self._feed)
        await self.tasks.see_to_keeper()
        self._keeper_care = asyncio.create_task(self.tasks.keep_seeing_to_keeper())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._feed is not None and self._store is not None:
            self._keeper_care.cancel()
            await asyncio.wait([self._keeper_care])
            await self.inbox.close()
            self._feed.close()
            await self._store.close()
            self._feed = self._store = None

    @property
    def store(self) -> Store:
        """The record. For what has no handle of its own."""
        if self._store is None:
            raise UsageError(
                "this Backburner is not open", remedy="use: async with Backburner.open()"
            )
        return self._store

    def session(self, name: str = DEFAULT_SESSION, *, owner: str = DEFAULT_OWNER) -> "Session":
        """A conversation, and the tasks that belong to it."""
        if not name or not owner:
            raise UsageError("a session and its owner need a name")
        for text in (name, owner):
            check_name(text)
        return Session(self, Scope(owner, name))

    async def prune(self, older_than: float | None = None, *, max_size: int | None = None) -> int:
        """Forget tasks that ended more than this many seconds ago, and the oldest while all

        take more than ``max_size`` bytes on the disk. Answers how many.
        """
        rule = Rule.of(self.settings, older_than, max_size)
        return (await prune(self.store, self.home, rule)).count

    # Queues

    @property
    def _lines(self) -> QueueService:
        return QueueService(self.store, self.tasks)

    async def queues(self) -> list[Queue]:
        """The queues of this home, with how many tasks wait and run in them."""
        return await self.store.queues()

    async def set_queue(self, name: str, width: int) -> Queue:
        """A new queue, of whose tasks so many run at once; or another width for one."""
        return await self._lines.put(name, width)

    async def pause_queue(self, name: str) -> Queue:
        """Start nothing more of it; what runs goes on."""
        return await self._lines.pause(name, paused=True)

    async def resume_queue(self, name: str) -> Queue:
        """Go on with a queue that was paused."""
        return await self._lines.pause(name, paused=False)

    async def remove_queue(self, name: str) -> None:
        """Remove a queue that no task waits or runs in; Conflict where one does."""
        await self._lines.remove(name)

    # Channels

    async def add_channel(
        self,
        name: str,
        *,
        command: str | None = None,
        webhook: str | None = None,
        desktop: bool = False,
        kinds: Collection[SignalKind] | None = None,
        allow_private: bool = False,
        session: str | None = None,
        owner: str = DEFAULT_OWNER,
    ) -> str | None:
        """Push signals there too: of one session, or of all of the owner; all kinds, or these.

        Answers the key that the receiver of a webhook checks signatures with, this once.
        """
        return await self._channels.add(
            name,
            Scope(owner, session),
            command=command,
            webhook=webhook,
            desktop=desktop,
            kinds=kinds,
            allow_private=allow_private,
        )

    async def remove_channel(self, name: str, *, owner: str = DEFAULT_OWNER) -> None:
        """Push no more there; what was not delivered is dropped. NotFound."""
        await self._channels.remove(name, owner)

    async def resume_channel(self, name: str, *, owner: str = DEFAULT_OWNER) -> bool:
        """Go on with a channel whose receiver was gone. False where it was not paused."""
        return await self._channels.resume(name, owner)

    async def test_channel(self, name: str, *, owner: str = DEFAULT_OWNER) -> str | None:
        """Deliver a test from here, now. Answers why it did not work; None where it did."""
        return await self._channels.try_out(name, Scope(owner))

    async def channels(self, *, owner: str = DEFAULT_OWNER) -> list[Channel]:
        """The channels of an owner, by name."""
        return await self._channels.listed(owner)

    @property
    def _channels(self) -> "ChannelService":
        from backburner.runtime.channels import ChannelService  # slow to load, seldom needed

        return ChannelService(self.store, self.home, self.settings)


def settings_from_environment() -> Settings:
    """The settings; a variable that says nothing sensible is a usage error."""
    try:
        return Settings.from_environment()
    except ValueError as error:
        raise UsageError(str(error)) from error
