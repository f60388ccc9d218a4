"""The door: a home that is open, its sessions, queues and channels."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from backburner.app.following import BATCH_S, Following
from backburner.app.session import Session
from backburner.app.signal import Signal
from backburner.model.channels import Channel
from backburner.model.errors import UsageError
from backburner.model.home import Home
from backburner.model.limits import (
    DEFAULT_OWNER,
    DEFAULT_SESSION,
    Settings,
)
from backburner.model.order import OwnerLimit, Queue, check_owner_limit
from backburner.model.policy import Policy
from backburner.model.session import check_name
from backburner.model.signals import SignalKind
from backburner.runtime.approvals import Approvals
from backburner.runtime.feed import Feed
from backburner.runtime.home import check_database_installed, home_of
from backburner.runtime.queues import QueueService
from backburner.runtime.retention import Rule, prune
from backburner.runtime.scribe import whole
from backburner.runtime.signals import SignalService
from backburner.runtime.succession import making_way
from backburner.runtime.tasks import TaskService
from backburner.store.protocol import Scope, Store
from backburner.store.sqlite.store import open_store
from backburner.work.process.identity import boot_id

if TYPE_CHECKING:
    from typing import Unpack

    from backburner.app.agents import Agents
    from backburner.app.runs import Runs
    from backburner.runtime.channels import ChannelService
    from backburner.runtime.runs.elsewhere import Elsewhere
    from backburner.store.postgres.node import NodeStore
    from backburner.work.agents.adapt import AgentLike, Maker
    from backburner.work.agents.command import CommandAgent
    from backburner.work.tools.registry import Registry
    from backburner.work.tools.tool import F, Options, Tool


class Backburner:
    """Background work in one home, open inside `async with Backburner.open()`."""

    def __init__(self, home: Home, settings: Settings) -> None:
        self.home = home
        self.settings = settings
        self._shared: NodeStore | None = None
        self.known_as: str | None = None
        """The name under which it carries out tools of a shared record, where it had one before:

        whoever sets it knows that no other process has it.
        """
        self.elsewhere: Elsewhere | None = None
        """Tools and agents that other machines have, in a shared record."""
        self._store: Store | None = None
        self._feed: Feed | None = None
        self._registry: Registry | None = None
        self._runs: Runs | None = None
        self.registered_agents: dict[str, Maker | CommandAgent] = {}
        """By name; open or not. `agents` asks them."""
        self._agents: Agents | None = None

    @classmethod
    def open(
        cls, home: str | os.PathLike[str] | None = None, *, settings: Settings | None = None
    ) -> Self:
        """The Backburner in this home folder: given, or BACKBURNER_HOME, or the user's own.

        ``postgresql://…`` opens a record that many machines share. The folder then holds copies of
        output, and nothing else.
        """
        return cls(home_of(home), settings or settings_from_environment())

    async def __aenter__(self) -> Self:
        if self.home.shared:
            check_database_installed()
            from backburner.runtime.artifacts import depot_of  # needs an extra
            from backburner.work.sealing import check_secret

            # What is wrong with them is said before anything is open.
            depot_of(self.settings)
            check_secret()
        store = self._store = await self._open_store()
        try:
            await self._begin(store)
        except BaseException:  # who tries again opens another one
            await store.close()
            raise
        return self

    async def _begin(self, store: Store) -> None:
        self._feed = Feed(store)
        self.tasks = TaskService(store, self.home, self.settings, self._feed)
        if self._shared is not None:
            from backburner.runtime.artifacts import depot_of, fetch_artifact  # needs an extra
            from backburner.runtime.copies import Copies
            from backburner.runtime.remote_input import give
            from backburner.runtime.runs.elsewhere import Elsewhere

            self.tasks.fetch_output = Copies(self._shared, self.home).fetch
            depot = depot_of(self.settings)
            self.tasks.fetch_artifact = partial(fetch_artifact, depot, self.home)
            self.tasks.give_input = partial(give, self._shared)
            self.elsewhere = Elsewhere(self._shared)
            await self.elsewhere.look()
        self.inbox = SignalService(store, self._feed)
        self.approvals = Approvals(store, self._feed, self.tasks)
        await self.tasks.see_to_keeper()
        self._keeper_care = asyncio.create_task(self._keep_watch())
        if self._registry is not None or self.registered_agents:
            self.runs.look_again()  # something may wait for these tools and agents

    async def _open_store(self) -> Store:
        if not self.home.shared:
            return open_store(self.home.root, boot_id(), lambda: making_way(self.home))
        check_database_installed()
        from backburner.model.worker import new_worker_id
        from backburner.store.postgres.node import open_node  # an extra

        with contextlib.suppress(OSError):  # what needs the folder says so
            os.makedirs(self.home.root, mode=0o700, exist_ok=True)
        name, pooler = self.known_as or new_worker_id(), self.settings.pooler
        self._shared = shared = await open_node(self.home.address, name, pooler=pooler)
        return shared

    async def _keep_watch(self) -> None:
        """For as long as it is open: who waits for a task must not wait in vain."""
        if self._shared is None:
            await self.tasks.keep_seeing_to_keeper()
            return
        from backburner.runtime.dead_nodes import keep_seeing_to_the_dead

        elsewhere = self.elsewhere
        assert elsewhere is not None
        await keep_seeing_to_the_dead(
            self._shared, self.home, self.settings.dead_after_s, elsewhere.look
        )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._feed is not None and self._store is not None:
            await whole(self._close(self._feed, self._store))

    async def _close(self, feed: Feed, store: Store) -> None:
        """All of it, whatever goes wrong with some: what is left half closed keeps its tasks, and

        its signals, from everybody.
        """
        try:
            async with contextlib.AsyncExitStack() as last_first:
                last_first.push_async_callback(store.close)
                last_first.callback(feed.close)
                last_first.push_async_callback(self.inbox.close)
                if self._runs is not None:
                    last_first.push_async_callback(self._runs.close)
                self._keeper_care.cancel()
                await asyncio.wait([self._keeper_care])
        finally:
            self._runs = self._agents = None
            self._feed = self._store = self._shared = self.elsewhere = None

    @property
    def store(self) -> Store:
        """The record. For what has no handle of its own."""
        if self._store is None:
            raise UsageError(
                f"this Backburner is not open, nor is its record, {self.home.shown}",
                remedy="use: async with Backburner.open()",
            )
        return self._store

    # Tools

    @property
    def registry(self) -> "Registry":
        """The tools of this application."""
        if self._registry is None:
            from backburner.work.tools.registry import Registry  # slow to load, seldom needed

            self._registry = Registry()
        return self._registry

    async def known_tools(self) -> "Registry":
        """The tools of this application and, in a shared record, those that others have."""
        if self.elsewhere is None:
            return self.registry
        await self.elsewhere.look()
        return self.elsewhere.beside(self.registry)

    def startable(self) -> "list[Tool]":
        """Tools that can run in the background, here or, as of the last look, elsewhere."""
        tools = self.registry if self.elsewhere is None else self.elsewhere.beside(self.registry)
        return [tool for tool in tools if tool.background and (tool.function or tool.elsewhere)]

    @property
    def runs(self) -> "Runs":
        """What this application carries out in itself."""
        if self._runs is None:
            from backburner.app.runs import Runs  # slow to load, seldom needed

            store = self.store
            assert self._feed is not None
            self._runs = Runs(self, store, self._feed, self._shared)
        return self._runs

    @overload
    def tool(self, function: "F", /) -> "F": ...
    @overload
    def tool(
        self, given: str | None = None, /, **options: "Unpack[Options]"
    ) -> "Callable[[F], F]": ...
    def tool(self, given: Any = None, /, **options: Any) -> Any:
        """Register a tool: `@bb.tool`, or with options, `@bb.tool(budget=30, background=True)`.

        Its schema comes from the signature of the function, which may take a `Context` first.
        """
        if self._store is not None:
            self.runs.look_again()
        return self.registry.tool(given, **options)

    # Agents

    @property
    def agents(self) -> "Agents":
        """The agents of this application."""
        if self._agents is None:
            from backburner.app.agents import Agents  # slow to load, seldom needed

            self._agents = Agents(self, self.registered_agents)
        return self._agents

    def agent(self, name: str, agent: "AgentLike") -> None:
        """Register an agent for `Session.ask`: a function of the prompt, or of a request and a

        context; an `Agent`, or a class of them, made anew for each prompt; or a `CommandAgent`.
        ``"default"`` is the built-in one unless another has that name.
        """
        from backburner.work.agents.adapt import adapted  # seldom needed

        if not name:
            raise UsageError("an agent needs a name")
        self.registered_agents[name] = adapted(agent)
        if self._store is not None:
            self.runs.look_again()  # something may wait for it

    def take_in(self, other: "Backburner") -> None:
        """The tools and agents of another one are of this one too."""
        for tool in other.registry:
            self.registry.register(tool)
        self.registered_agents |= other.registered_agents
        if self._store is not None:
            self.runs.look_again()

    def session(
        self,
        name: str = DEFAULT_SESSION,
        *,
        owner: str = DEFAULT_OWNER,
        folder: str | os.PathLike[str] | None = None,
        mode: str = "normal",
        role: str = "user",
    ) -> "Session":
        """A conversation, and the tasks that belong to it. Its file tools work in ``folder``.

        ``mode`` is normal, plan, which changes nothing, or dry_run, which says what it would
        change. ``role`` is user, admin, or viewer, who only looks.
        """
        if not name or not owner:
            raise UsageError("a session and its owner need a name")
        for text in (name, owner):
            check_name(text)
        place = None if folder is None else os.path.abspath(folder)
        return Session(self, Scope(owner, name), folder=place, policy=Policy.of(mode, role))

    def follow_up(
        self,
        callback: "Callable[[list[Signal]], object]",
        *,
        owner: str = DEFAULT_OWNER,
        batch_s: float = BATCH_S,
    ) -> Following:
        """Go on with every chat of an owner; see `Session.follow_up`.

        The callback gets the signals of one session at a time.
        """
        check_name(owner)
        return Following(self, Scope(owner), callback, batch_s)

    async def prune(self, older_than: float | None = None, *, max_size: int | None = None) -> int:
        """Forget tasks that ended more than this many seconds ago, and the oldest while all

        take more than ``max_size`` bytes on the disk. Answers how many.
        """
        rule = Rule.of(
            self.settings, older_than, max_size, now=self.store.now(), here=not self.home.shared
        )
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

    # Owners

    async def owner_limits(self) -> list[OwnerLimit]:
        """How many tasks of owners may run at once, and how many run and wait."""
        return await self.store.owner_limits()

    async def set_owner_limit(self, owner: str | None, limit: int | None) -> None:
        """Of an owner so many tasks run at once, on all machines together; what is more waits.

        None as the owner is for every one that has no limit of its own, None as the limit for no
        limit. What runs goes on.
        """
        check_owner_limit(limit)
        if owner is not None:
            if not owner:
                raise UsageError("an owner needs a name", remedy="use None for all others")
            check_name(owner)
        await self.store.set_owner_limit(owner, limit)
        await self.tasks.see_to_keeper()  # there may be room now for what waits

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
