"""The same Backburner without `await`, for scripts and for frameworks that are not asynchronous.

One door: an event loop in a thread of its own, and every call handed through to it. Safe to call
from several threads. `from backburner.sync import Backburner`.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from backburner import app
from backburner.app.following import BATCH_S
from backburner.model.channels import Channel
from backburner.model.errors import UsageError
from backburner.model.limits import (
    DEFAULT_MAX_RUNTIME_S,
    DEFAULT_OWNER,
    DEFAULT_SESSION,
    Settings,
)
from backburner.model.order import Queue
from backburner.model.schedule import ScheduleState
from backburner.model.signals import SignalKind
from backburner.model.states import State
from backburner.sync.conversation import Conversation, Following, handing_over
from backburner.sync.portal import Portal
from backburner.sync.schedule import Schedule
from backburner.sync.signal import Signal
from backburner.sync.task import Task

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Unpack

    from backburner.model.task import Progress
    from backburner.runtime.runs.tools import Invocation
    from backburner.runtime.schedules.work import Given
    from backburner.sync.toolset import Toolset
    from backburner.work.agents.adapt import AgentLike
    from backburner.work.agents.attachments import Attachable
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

    def remove_queue(self, name: str) -> None:
        """Remove a queue that no task waits or runs in; Conflict where one does."""
        self._door.call(self._inner.remove_queue(name))


async def _register(inner: app.Backburner, name: str, agent: "AgentLike") -> None:
    inner.agent(name, agent)


class Session(Conversation):
    """See `backburner.Session`."""

    def __init__(self, portal: Portal, inner: app.Session) -> None:
        self._portal = portal
        self._inner = inner

    @property
    def name(self) -> str:
        """The session's name."""
        return self._inner.name

    def run(
        self,
        command: str | Sequence[str],
        *,
        title: str | None = None,
        max_runtime: float | None = DEFAULT_MAX_RUNTIME_S,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        separate_stderr: bool = False,
        stdin: bool = False,
        pty: bool = False,
        size: tuple[int, int] | None = None,
        notify: bool = False,
        ready_output: str | None = None,
        ready_port: int | None = None,
        ready_file: str | os.PathLike[str] | None = None,
        ready_http: str | None = None,
        match: str | None = None,
        silence: float | None = None,
        after: str | Sequence[str] = (),
        after_failure: bool = False,
        retries: int = 0,
        queue: str | None = None,
        nice: int | None = None,
        memory: int | None = None,
        cpu_time: float | None = None,
        id: str | None = None,
    ) -> "Task":
        """Start a shell task; returns when it is on disk."""
        work = self._inner.run(
            command,
            title=title,
            max_runtime=max_runtime,
            cwd=cwd,
            env=env,
            separate_stderr=separate_stderr,
            stdin=stdin,
            pty=pty,
            size=size,
            notify=notify,
            ready_output=ready_output,
            ready_port=ready_port,
            ready_file=ready_file,
            ready_http=ready_http,
            match=match,
            silence=silence,
            after=after,
            after_failure=after_failure,
            retries=retries,
            queue=queue,
            nice=nice,
            memory=memory,
            cpu_time=cpu_time,
            id=id,
        )
        return Task(self._portal, self._portal.call(work))

    def call(
        self,
        function: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        title: str | None = None,
        max_runtime: float | None = DEFAULT_MAX_RUNTIME_S,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        notify: bool = False,
        after: str | Sequence[str] = (),
        after_failure: bool = False,
        retries: int = 0,
        queue: str | None = None,
        nice: int | None = None,
        memory: int | None = None,
        cpu_time: float | None = None,
        id: str | None = None,
    ) -> "Task":
        """Call a function in a process of its own; returns when it is on disk."""
        work = self._inner.call(
            function,
            arguments,
            title=title,
            max_runtime=max_runtime,
            cwd=cwd,
            env=env,
            notify=notify,
            after=after,
            after_failure=after_failure,
            retries=retries,
            queue=queue,
            nice=nice,
            memory=memory,
            cpu_time=cpu_time,
            id=id,
        )
        return Task(self._portal, self._portal.call(work))

    def schedule(
        self,
        when: "str | datetime",
        spec: "Given",
        *,
        tz: str = "UTC",
        title: str | None = None,
        missed: str = "once",
        overlap: str = "skip",
        jitter: float = 0,
        max_runtime: float | None = DEFAULT_MAX_RUNTIME_S,
        signal_on_completion: bool = True,
        id: str | None = None,
    ) -> "Schedule":
        """Start work by the clock."""
        work = self._inner.schedule(
            when,
            spec,
            tz=tz,
            title=title,
            missed=missed,
            overlap=overlap,
            jitter=jitter,
            max_runtime=max_runtime,
            signal_on_completion=signal_on_completion,
            id=id,
        )
        return Schedule(self._portal, self._portal.call(work))

    def schedules(self, *, states: Sequence[ScheduleState] = ()) -> list["Schedule"]:
        """The schedules of this session, oldest first."""
        found = self._portal.call(self._inner.schedules(states=states))
        return [Schedule(self._portal, each) for each in found]

    def find_schedule(self, reference: str) -> "Schedule":
        """A schedule by its id, or by enough of it to be the only one."""
        return Schedule(self._portal, self._portal.call(self._inner.find_schedule(reference)))

    def ask(
        self,
        prompt: str,
        *,
        agent: str = "default",
        attachments: "Sequence[Attachable]" = (),
        model: str | None = None,
        title: str | None = None,
        max_runtime: float | None = DEFAULT_MAX_RUNTIME_S,
        keep_children: bool = False,
        wake: str = "on_terminal",
        id: str | None = None,
    ) -> "Task":
        """Ask a sub-agent, which answers in the background; returns when that is on disk."""
        work = self._inner.ask(
            prompt,
            agent=agent,
            attachments=attachments,
            model=model,
            title=title,
            max_runtime=max_runtime,
            keep_children=keep_children,
            wake=wake,
            id=id,
        )
        return Task(self._portal, self._portal.call(work))

    @property
    def folder(self) -> str:
        """Where its file tools work: given, or one of its own in the home."""
        return self._inner.folder

    def spawn(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        title: str | None = None,
        max_runtime: float | None = DEFAULT_MAX_RUNTIME_S,
        signal_on_completion: bool = True,
        wake: str | None = None,
        id: str | None = None,
    ) -> "Task":
        """Start a registered tool in the background. Returns when it is on disk."""
        work = self._inner.spawn(
            tool,
            arguments,
            title=title,
            max_runtime=max_runtime,
            signal_on_completion=signal_on_completion,
            wake=wake,
            id=id,
        )
        return Task(self._portal, self._portal.call(work))

    def invoke(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        budget: float | Literal["own"] | None = "own",
        on_progress: "Callable[[Progress], object] | None" = None,
    ) -> "Invocation":
        """Call a registered tool and wait for it, for as long as its budget lasts.

        ``on_progress`` is called in the thread of the event loop.
        """
        called = self._portal.call(
            self._inner.invoke(tool, arguments, budget=budget, on_progress=on_progress)
        )
        if called.parked:
            return replace(called, task=Task(self._portal, called.task))
        return called

    def toolset(self, dialect: str | None = None) -> "Toolset":
        """Tools for a model that works in this session: ours, or those of another system."""
        from backburner.sync.toolset import Toolset  # slow to load, seldom needed

        return Toolset(self._portal, self._inner.toolset(dialect))

    def task(self, reference: str) -> "Task":
        """A task by its id, or by enough of it to be the only one."""
        return Task(self._portal, self._portal.call(self._inner.task(reference)))

    def tasks(
        self, *, limit: int = 50, states: Sequence[State] = (), before: int | None = None
    ) -> list["Task"]:
        """Tasks of this session, newest first."""
        found = self._portal.call(self._inner.tasks(limit=limit, states=states, before=before))
        return [Task(self._portal, task) for task in found]


async def _look_again(inner: app.Backburner) -> None:
    inner.runs.look_again()
