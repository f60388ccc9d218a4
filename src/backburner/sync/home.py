"""The door without `await`: a home that is open, with an event loop of its own in a thread."""

import os
from collections.abc import Callable, Collection
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

from backburner import app
from backburner.app.following import BATCH_S
from backburner.model.channels import Channel
from backburner.model.errors import UsageError
from backburner.model.limits import (
    DEFAULT_OWNER,
    DEFAULT_SESSION,
    Settings,
)
from backburner.model.order import OwnerLimit, Queue
from backburner.model.signals import SignalKind
from backburner.sync.conversation import Following, handing_over
from backburner.sync.portal import Portal
from backburner.sync.session import Session
from backburner.sync.signal import Signal

if TYPE_CHECKING:
    from typing import Unpack

    from backburner.work.agents.adapt import AgentLike
    from backburner.work.tools.registry import Registry
    from backburner.work.tools.tool import F, Options


class Backburner:
    """See `backburner.Backburner`; open inside `with Backburner.open()`."""

    def __init__(self, inner: app.Backburner) -> None:
        self._inner = inner
        self._portal: Portal | None = None

    @classmethod
    def open(
        cls, home: str | os.PathLike[str] | None = None, *, settings: Settings | None = None
    ) -> Self:
        """The Backburner in this home folder: given, or BACKBURNER_HOME, or the user's own."""
        return cls(app.Backburner.open(home, settings=settings))

    def __enter__(self) -> Self:
        portal = Portal()
        try:
            portal.call(self._inner.__aenter__())
        except BaseException:
            portal.close()
            raise
        self._portal = portal
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._portal is not None:
            self._portal.call(self._inner.__aexit__(kind, error, trace))
            self._portal.close()
            self._portal = None

    @property
    def _door(self) -> Portal:
        if self._portal is None:
            raise UsageError("this Backburner is not open", remedy="use: with Backburner.open()")
        return self._portal

    def session(
        self,
        name: str = DEFAULT_SESSION,
        *,
        owner: str = DEFAULT_OWNER,
        folder: str | os.PathLike[str] | None = None,
        mode: str = "normal",
        role: str = "user",
    ) -> "Session":
        """A conversation, and the tasks that belong to it. Its file tools work in ``folder``."""
        inner = self._inner.session(name, owner=owner, folder=folder, mode=mode, role=role)
        return Session(self._door, inner)

    def follow_up(
        self,
        callback: "Callable[[list[Signal]], object]",
        *,
        owner: str = DEFAULT_OWNER,
        batch_s: float = BATCH_S,
    ) -> Following:
        """Go on with every chat of an owner: `with` runs it, the callback in a thread."""
        door = self._door
        told = handing_over(door, callback)
        return Following(door, self._inner.follow_up(told, owner=owner, batch_s=batch_s))

    @property
    def registry(self) -> "Registry":
        """The tools of this application."""
        return self._inner.registry

    @overload
    def tool(self, function: "F", /) -> "F": ...
    @overload
    def tool(
        self, given: str | None = None, /, **options: "Unpack[Options]"
    ) -> "Callable[[F], F]": ...
    def tool(self, given: Any = None, /, **options: Any) -> Any:
        """Register a tool: `@bb.tool`, or with options, `@bb.tool(budget=30, background=True)`."""
        decorate = self.registry.tool(given, **options)
        if self._portal is not None:  # something may wait for it
            self._portal.call(_look_again(self._inner))
        return decorate

    def agent(self, name: str, agent: "AgentLike") -> None:
        """Register an agent for `Session.ask`."""
        if self._portal is None:
            self._inner.agent(name, agent)
        else:
            self._portal.call(_register(self._inner, name, agent))

    def prune(self, older_than: float | None = None, *, max_size: int | None = None) -> int:
        """Forget tasks that ended more than this many seconds ago, and the oldest while all

        take more than ``max_size`` bytes on the disk. Answers how many.
        """
        return self._door.call(self._inner.prune(older_than, max_size=max_size))

    def add_channel(
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
        """Push signals there too. Answers the key of a webhook, which is not shown again."""
        work = self._inner.add_channel(
            name,
            command=command,
            webhook=webhook,
            desktop=desktop,
            kinds=kinds,
            allow_private=allow_private,
            session=session,
            owner=owner,
        )
        return self._door.call(work)

    def remove_channel(self, name: str, *, owner: str = DEFAULT_OWNER) -> None:
        """Push no more there; what was not delivered is dropped."""
        self._door.call(self._inner.remove_channel(name, owner=owner))

    def resume_channel(self, name: str, *, owner: str = DEFAULT_OWNER) -> bool:
        """Go on with a channel whose receiver was gone. False where it was not paused."""
        return self._door.call(self._inner.resume_channel(name, owner=owner))

    def test_channel(self, name: str, *, owner: str = DEFAULT_OWNER) -> str | None:
        """Deliver a test from here, now. Answers why it did not work; None where it did."""
        return self._door.call(self._inner.test_channel(name, owner=owner))

    def channels(self, *, owner: str = DEFAULT_OWNER) -> list[Channel]:
        """The channels of an owner, by name."""
        return self._door.call(self._inner.channels(owner=owner))

    def queues(self) -> list[Queue]:
        """The queues of this home, with how many tasks wait and run in them."""
        return self._door.call(self._inner.queues())

    def set_queue(self, name: str, width: int) -> Queue:
        """A new queue, of whose tasks so many run at once; or another width for one."""
        return self._door.call(self._inner.set_queue(name, width))

    def pause_queue(self, name: str) -> Queue:
        """Start nothing more of it; what runs goes on."""
        return self._door.call(self._inner.pause_queue(name))

    def resume_queue(self, name: str) -> Queue:
        """Go on with a queue that was paused."""
        return self._door.call(self._inner.resume_queue(name))

    def owner_limits(self) -> list[OwnerLimit]:
        """How many tasks of owners may run at once, and how many run and wait."""
        return self._door.call(self._inner.owner_limits())

    def set_owner_limit(self, owner: str | None, limit: int | None) -> None:
        """Of an owner, or of every other one, so many tasks run at once; None for no limit."""
        self._door.call(self._inner.set_owner_limit(owner, limit))

    def remove_queue(self, name: str) -> None:
        """Remove a queue that no task waits or runs in; Conflict where one does."""
        self._door.call(self._inner.remove_queue(name))


async def _register(inner: app.Backburner, name: str, agent: "AgentLike") -> None:
    inner.agent(name, agent)


async def _look_again(inner: app.Backburner) -> None:
    inner.runs.look_again()
