"""A session without `await`: every call is handed through to the event loop behind the portal."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from backburner import app
from backburner.model.limits import (
    DEFAULT_MAX_RUNTIME_S,
)
from backburner.model.schedule import ScheduleState
from backburner.model.states import State
from backburner.sync.conversation import Conversation
from backburner.sync.portal import Portal
from backburner.sync.schedule import Schedule
from backburner.sync.task import Task

if TYPE_CHECKING:
    from datetime import datetime

    from backburner.model.task import Progress
    from backburner.runtime.runs.tools import Invocation
    from backburner.runtime.schedules.work import Given
    from backburner.sync.toolset import Toolset
    from backburner.work.agents.attachments import Attachable


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
        priority: int = 0,
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
            priority=priority,
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
        priority: int = 0,
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
            priority=priority,
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
        priority: int = 0,
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
            priority=priority,
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
        priority: int = 0,
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
            priority=priority,
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
        priority: int = 0,
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
            priority=priority,
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
