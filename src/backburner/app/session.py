"""One conversation: starts tasks, finds them again, is told about them."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from backburner.app.acting import acts
from backburner.app.conversation import Conversation
from backburner.app.schedule import Schedule, service
from backburner.app.task import Task
from backburner.model import ids
from backburner.model.allowance import Allowance
from backburner.model.errors import UsageError
from backburner.model.input import Input, WindowSize
from backburner.model.limits import (
    DEFAULT_MAX_RUNTIME_S,
)
from backburner.model.order import Order
from backburner.model.policy import FREE, Action, Policy
from backburner.model.schedule import ScheduleState
from backburner.model.states import State
from backburner.model.task import check_title
from backburner.model.wake import Wake, to_wake
from backburner.model.watching import Watching
from backburner.runtime.runs.options import RunOptions
from backburner.runtime.tasks import StartOptions
from backburner.store.protocol import Scope
from backburner.work.shell import ShellCommand
from backburner.work.tools.own_folder import own_folder, recognised

if TYPE_CHECKING:
    from datetime import datetime

    from backburner.app.home import Backburner
    from backburner.model.home import Home
    from backburner.model.task import Progress
    from backburner.runtime.runs.tools import Invocation
    from backburner.runtime.schedules.work import Given
    from backburner.tools.toolset import Toolset
    from backburner.work.agents.attachments import Attachable


class Session(Conversation):
    """One conversation: starts tasks, finds them again, is told about them."""

    def __init__(
        self,
        backburner: "Backburner",
        scope: Scope,
        *,
        folder: str | None = None,
        parent: str | None = None,
        depth: int = 0,
        policy: Policy = FREE,
    ) -> None:
        self._backburner = backburner
        self.scope = scope
        self.policy = policy
        self._folder = folder and recognised(folder, backburner.home.sessions)
        self.parent = parent
        """The task that this is the session of, where it is a sub-agent's own."""
        self.within = parent or os.environ.get("BACKBURNER_TASK_ID")
        """The task that what is started here belongs to: that one, or the one that we run in."""
        self.depth = depth
        """How many sub-agents it is below a conversation."""

    @property
    def name(self) -> str:
        """The session's name."""
        assert self.scope.session is not None
        return self.scope.session

    @property
    def folder(self) -> str:
        """Where its file tools work: given, or one of its own in the home."""
        if self._folder is None:
            sessions = self._backburner.home.sessions
            self._folder = own_folder(sessions, self.scope.owner, self.name)
        return self._folder

    @acts(Action.START)
    async def run(
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
        """Start a shell task: a line for a shell, or a list of words. Returns when it is on disk.

        ``max_runtime`` is in seconds, None for no limit. It runs in ``cwd`` with this process's
        environment and ``env``. With ``stdin`` it can be sent input; with ``pty`` it has a terminal
        of ``size`` columns and rows (those of the terminal here, else 80 and 24).

        It is ready when a line of its output matches, when it listens on a port, when it has
        written a file or when an address answers; see `Task.wait`. The session is told then, of
        lines that ``match``, and of ``silence`` seconds without output.

        It starts ``after`` other tasks (ids, or enough of them), and fails where one of those did
        not succeed, unless ``after_failure``; waits for its place in a ``queue``; and is tried
        again up to ``retries`` times. Of what waits the highest ``priority``, from -10 to 10, goes
        first. ``memory`` is in bytes, ``cpu_time`` in seconds.
        """
        first = (after,) if isinstance(after, str) else tuple(after)
        order = Order(queue, first, after_failure, retries, priority)
        allowance = Allowance(nice, memory, cpu_time)
        reads = Input.chosen(stdin=stdin, pty=pty)
        window = WindowSize(*size) if size is not None else None
        watching = Watching.of(
            ready_output=ready_output,
            ready_port=ready_port,
            ready_file=None if ready_file is None else os.fspath(ready_file),
            ready_http=ready_http,
            match=match,
            silence=silence,
        )
        folder = os.path.join(os.getcwd(), cwd) if cwd is not None else os.getcwd()
        record = await self._backburner.tasks.start_shell(
            self.scope,
            ShellCommand(
                command,
                folder,
                dict(env or {}),
                separate_stderr,
                reads,
                window,
                watching,
                allowance,
            ),
            StartOptions(
                title,
                max_runtime,
                id,
                await self._parent_of_new(),
                notify=_screen(self._backburner.home) if notify else None,
                order=order,
            ),
        )
        return self._handle(record)

    @acts(Action.START)
    async def call(
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
        """Call a function, ``package.module:function``, in a process of its own.

        Arguments go by name and are JSON, as is what it returns: the task's result. What it prints
        is its output, as it prints it; what it raises, why it failed. Its modules are looked for
        where this process looks. A first parameter that is called ``context`` gets a `Context`.
        The rest is as for `run`.
        """
        from backburner.work import python  # not for everyone who runs a command

        first = (after,) if isinstance(after, str) else tuple(after)
        order = Order(queue, first, after_failure, retries, priority)
        folder = os.path.join(os.getcwd(), cwd) if cwd is not None else os.getcwd()
        given: Mapping[str, Any] = {} if arguments is None else arguments
        allowance = Allowance(nice, memory, cpu_time)
        call = python.PythonCall(function, given, folder, dict(env or {}), allowance)
        record = await self._backburner.tasks.start_process(
            self.scope,
            python.assignment(call, self._backburner.settings),
            StartOptions(
                title,
                max_runtime,
                id,
                await self._parent_of_new(),
                notify=_screen(self._backburner.home) if notify else None,
                order=order,
            ),
        )
        return self._handle(record)

    @acts(Action.START)
    async def spawn(
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
        """Start a registered tool in the background. Returns when it is on disk.

        ``wake`` says when the session is told: on_terminal, on_activity, or silent, which is what
        ``signal_on_completion=False`` means. ``priority`` counts where it has to wait.
        """
        if wake is not None and not signal_on_completion and to_wake(wake) is not Wake.SILENT:
            raise UsageError(
                "signal_on_completion=False means silent, and wake says otherwise",
                remedy="give one of them",
            )
        told = to_wake(wake or ("on_terminal" if signal_on_completion else "silent"))
        check_title(title)
        options = RunOptions(title, max_runtime, id, told.value, Order(priority=priority))
        await self._parent_of_new()
        return await self._backburner.runs.spawn(self, tool, arguments or {}, options)

    @acts(Action.START)
    async def invoke(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        budget: float | Literal["own"] | None = "own",
        on_progress: "Callable[[Progress], object] | None" = None,
    ) -> "Invocation":
        """Call a registered tool and wait for it, for as long as its budget lasts.

        Past ``budget`` seconds (the tool's own unless given, None for no end) the call is parked:
        it goes on as a task, which the answer names. Whoever is cancelled before that takes the
        call with them. ``on_progress`` is told how far the call says that it is.
        """
        if self.parent is not None or self.name.startswith(ids.PREFIX):
            await self._parent_of_new()
        return await self._backburner.runs.invoke(self, tool, arguments or {}, budget, on_progress)

    @acts(Action.START)
    async def ask(
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
        """Ask a sub-agent, which answers in the background: the task's result is its answer.

        The agent has a session of its own, named after its task; what it has started there is
        stopped when it ends, unless ``keep_children``. ``attachments`` are files by their paths,
        pictures, or bytes that say what they are. ``priority`` counts where it has to wait.
        """
        from backburner.runtime.runs.agents import Asking  # slow to load, seldom needed
        from backburner.work.agents.attachments import attached

        check_title(title)
        files = await asyncio.to_thread(attached, attachments) if attachments else ()
        order = Order(priority=priority)
        asking = Asking(
            prompt, agent, files, model, title, max_runtime, keep_children, wake, id, order
        )
        parent = await self._parent_of_new(by_name=True)
        return self._handle(await self._backburner.agents.ask(self, parent, asking))

    async def _parent_of_new(self, *, by_name: bool = False) -> str | None:
        """The task that what is started here belongs to. Refused where an agent may not go on.

        A process that an agent has started knows that by the name of its session alone.
        """
        named_so = by_name or self.name.startswith(ids.PREFIX)
        if self.parent is None and not named_so:
            return self.within
        from backburner.runtime.agents import Lineage, check_may_start, lineage_of

        store, lineage = self._backburner.store, Lineage(self.parent, self.depth)
        if self.parent is None:
            lineage = await lineage_of(store, self.scope)
            self.depth = lineage.depth
        await check_may_start(store, self.scope, lineage)
        return self.within or lineage.parent

    @acts(Action.SCHEDULE)
    async def schedule(
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
        """Start work by the clock: at each time of a cron expression of 5 fields, or once at an

        RFC 3339 time or an aware datetime. ``tz`` is the zone whose clock the expression means.

        ``spec`` is a command, or a mapping with one of ``command`` (and ``cwd``, ``env``), ``call``
        (a function, and ``args``), ``tool`` (and ``args``) and ``ask`` (a prompt, and ``agent``).

        ``missed`` says what becomes of firings for which nobody was there: ``skip``, ``once``, one
        for all, or ``all``, up to 100. ``overlap`` says what becomes of a firing while the task of
        an earlier one has not ended: ``skip``, ``queue`` or ``parallel``. A firing may be up to
        ``jitter`` seconds late, always the same for the same firing. Its tasks have this
        ``priority`` where they have to wait.
        """
        from backburner.app.scheduling import read_work, refuse_agents  # slow to load
        from backburner.runtime.schedules.service import ScheduleOptions

        await refuse_agents(self._backburner, self.scope)
        record, created = await service(self._backburner).add(
            self.scope,
            when,
            await read_work(self._backburner, spec, self.folder),
            ScheduleOptions(
                tz, title, missed, overlap, jitter, max_runtime, signal_on_completion, id, priority
            ),
        )
        return Schedule(self._backburner, record, created=created, policy=self.policy)

    async def schedules(self, *, states: Sequence[ScheduleState] = ()) -> list["Schedule"]:
        """The schedules of this session, oldest first."""
        records = await self._backburner.store.schedules(self.scope, states=states)
        return [Schedule(self._backburner, record, policy=self.policy) for record in records]

    async def find_schedule(self, reference: str) -> "Schedule":
        """A schedule by its id, or by enough of it to be the only one. NotFound, Ambiguous."""
        found = await service(self._backburner).find(reference, self.scope)
        return Schedule(self._backburner, found, policy=self.policy)

    def toolset(self, dialect: str | None = None) -> "Toolset":
        """Tools for a model that works in this session: ours, or those of another system.

        Its ``schemas`` go to the model, its ``call`` carries out what the model calls.
        """
        from backburner.tools.dialects import offers_of  # slow to load, seldom needed
        from backburner.tools.toolset import Toolset

        takes = self.policy.allows(Action.TAKE) and not self.policy.plays(Action.TAKE)
        return Toolset(offers_of(dialect, self), self._backburner.store, self.scope, takes=takes)

    async def task(self, reference: str) -> "Task":
        """A task by its id, or by enough of it to be the only one. NotFound, Ambiguous."""
        return self._handle(await self._backburner.tasks.find(reference, self.scope))

    async def tasks(
        self, *, limit: int = 50, states: Sequence[State] = (), before: int | None = None
    ) -> list["Task"]:
        """Tasks of this session, newest first."""
        records = await self._backburner.store.newest(
            self.scope, limit=limit, states=states, before=before
        )
        return [self._handle(record) for record in records]


def _screen(home: "Home") -> str:
    from backburner.runtime.channels import desktop_bus  # slow to load, seldom needed

    if home.shared:
        raise UsageError(
            "a notification is for a screen of one machine, and a shared record has many",
            remedy="add a webhook, or wait for the task",
        )

    return desktop_bus()
