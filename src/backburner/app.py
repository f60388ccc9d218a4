"""The public handles: Backburner, Session, Task, Signal. They compose what is below, no more."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from backburner.model import clock
from backburner.model.document import signal_document
from backburner.model.ending import TaskError
from backburner.model.errors import UsageError
from backburner.model.events import Event
from backburner.model.home import Home, resolve_home
from backburner.model.limits import (
    DEFAULT_GRACE_S,
    DEFAULT_MAX_RUNTIME_S,
    DEFAULT_OWNER,
    DEFAULT_SESSION,
    OUTPUT_MAX_CHARS,
    Settings,
)
from backburner.model.signals import Signal as SignalRecord
from backburner.model.signals import SignalState
from backburner.model.states import State
from backburner.model.task import Task as TaskRecord
from backburner.runtime.feed import Feed
from backburner.runtime.output import cursor_at, read_task_output
from backburner.runtime.retention import prune
from backburner.runtime.signals import SignalService
from backburner.runtime.tasks import StartOptions, TaskService
from backburner.store.protocol import Scope, Store
from backburner.store.sqlite.store import open_store
from backburner.work.log.read import Chunk, Streams
from backburner.work.process.identity import boot_id
from backburner.work.shell import ShellCommand


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
        store = open_store(self.home.root, boot_id())
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
        return Session(self, Scope(owner, name))

    async def prune(self, older_than: float | None = None) -> int:
        """Forget tasks that ended more than this many seconds ago. Answers how many."""
        age = self.settings.retention_s if older_than is None else older_than
        return await prune(self.store, self.home, clock.now() - round(age * clock.SECOND))


class Session:
    """One conversation: starts tasks, finds them again, is told about them."""

    def __init__(self, backburner: Backburner, scope: Scope) -> None:
        self._backburner = backburner
        self.scope = scope

    @property
    def name(self) -> str:
        """The session's name."""
        assert self.scope.session is not None
        return self.scope.session

    async def run(
        self,
        command: str | Sequence[str],
        *,
        title: str | None = None,
        max_runtime: float | None = DEFAULT_MAX_RUNTIME_S,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        separate_stderr: bool = False,
        id: str | None = None,
    ) -> "Task":
        """Start a shell task: a line for a shell, or a list of words. Returns when it is on disk.

        ``max_runtime`` is in seconds, None for no limit. It runs in ``cwd`` with this process's
        environment and ``env``.
        """
        folder = os.path.join(os.getcwd(), cwd) if cwd is not None else os.getcwd()
        record = await self._backburner.tasks.start_shell(
            self.scope,
            ShellCommand(command, folder, dict(env or {}), separate_stderr),
            StartOptions(title, max_runtime, id, os.environ.get("BACKBURNER_TASK_ID")),
        )
        return Task(self._backburner, record)

    async def task(self, reference: str) -> "Task":
        """A task by its id, or by enough of it to be the only one. NotFound, Ambiguous."""
        return Task(self._backburner, await self._backburner.tasks.find(reference, self.scope))

    async def tasks(
        self, *, limit: int = 50, states: Sequence[State] = (), before: int | None = None
    ) -> list["Task"]:
        """Tasks of this session, newest first."""
        records = await self._backburner.store.newest(
            self.scope, limit=limit, states=states, before=before
        )
        return [Task(self._backburner, record) for record in records]

    async def signals(self, *, follow: bool = True) -> AsyncGenerator["Signal"]:
        """What the session is to be told, as it happens. Each is this consumer's until its `ack`.

        Without ``follow``, only what is there.
        """
        consumed = self._backburner.inbox.consume(self.scope, follow=follow)
        # Closed with us: what was not acknowledged has to go back before the home is closed.
        async with contextlib.aclosing(consumed):
            async for record in consumed:
                yield Signal(self._backburner, record)

    async def told(
        self, *, states: Sequence[SignalState] = (), after: int = 0, limit: int = 100
    ) -> list["Signal"]:
        """What the session was and is to be told, without claiming anything; oldest first."""
        records = await self._backburner.store.signals(
            self.scope, states=states, after=after, limit=limit
        )
        return [Signal(self._backburner, record) for record in records]


class Task:
    """A handle on one task. Its record is as of the last call; `refresh` brings it up to date."""

    def __init__(self, backburner: Backburner, record: TaskRecord) -> None:
        self._backburner = backburner
        self.record = record
        self._scope = Scope(record.owner, record.session)

    def __repr__(self) -> str:
        return f"<Task {self.id} {self.state}>"

    @property
    def id(self) -> str:
        """Its name."""
        return self.record.id

    @property
    def state(self) -> State:
        """As of the last call."""
        return self.record.state

    @property
    def exit_code(self) -> int | None:
        """Of a process that ended by itself."""
        return self.record.exit_code

    @property
    def error(self) -> TaskError | None:
        """Why it failed."""
        return self.record.error

    @property
    def result(self) -> Any:
        """What it returned."""
        return self.record.result

    async def refresh(self) -> "Task":
        """Look again."""
        self.record = await self._backburner.tasks.get(self.id, self._scope)
        return self

    async def wait(self, timeout: float | None = None) -> "Task":
        """Wait for the end, without polling. TimeIsUp after ``timeout`` seconds; it goes on."""
        self.record = await self._backburner.tasks.wait(self.id, self._scope, timeout)
        return self

    async def stop(self, *, force: bool = False, grace: float = DEFAULT_GRACE_S) -> "Task":
        """End it and everything it started: TERM, ``grace`` seconds, KILL; KILL at once with

        ``force``. Returns when nothing is left.
        """
        grace_s = 0.0 if force else grace
        self.record = await self._backburner.tasks.stop(self.id, self._scope, grace_s=grace_s)
        return self

    async def output(
        self,
        *,
        since: str | None = None,
        max_chars: int | None = OUTPUT_MAX_CHARS,
        grep: str | None = None,
        last_lines: int | None = None,
        raw: bool = False,
        streams: Streams = "both",
    ) -> Chunk:
        """What it has written since the cursor ``since``, with noise folded unless ``raw``.

        Long output comes as head and tail. Give the chunk's cursor to the next read.
        """
        await self.refresh()
        return read_task_output(
            self._backburner.home,
            self.record,
            since=since,
            max_chars=max_chars,
            grep=grep,
            last_lines=last_lines,
            raw=raw,
            streams=streams,
        )

    def cursor_ago(self, seconds: float) -> str | None:
        """The cursor of what was written by then, to the nearest earlier mark."""
        at = clock.now() - round(seconds * clock.SECOND)
        return cursor_at(self._backburner.home, self.record, at)

    async def events(self, *, after: int = 0, follow: bool = True) -> AsyncIterator[Event]:
        """What happened to it, from the beginning or after an event's number, up to its end."""
        async for event in self._backburner.tasks.events(
            self.id, self._scope, after=after, follow=follow
        ):
            yield event

    async def rerun(self, *, id: str | None = None) -> "Task":
        """The same command again as a new task, with this process's environment."""
        record = await self._backburner.tasks.start_shell(
            self._scope,
            ShellCommand.from_spec(self.record.spec),
            StartOptions(self.record.title, self.record.max_runtime_s, id, self.record.parent),
        )
        return Task(self._backburner, record)

    def document(self) -> dict[str, Any]:
        """The task as JSON."""
        return self._backburner.tasks.describe(self.record)


class Signal:
    """Something that a session is told."""

    def __init__(self, backburner: Backburner, record: SignalRecord) -> None:
        self._backburner = backburner
        self.record = record

    def __repr__(self) -> str:
        return f"<Signal {self.key} {self.record.state}>"

    @property
    def key(self) -> str:
        """The same for every repetition of this signal: consumers remember it."""
        return self.record.key

    @property
    def task(self) -> str:
        """The task's id."""
        return self.record.task

    @property
    def text(self) -> str:
        """What happened, in a sentence."""
        return self.record.text

    async def ack(self) -> bool:
        """It was dealt with. False when that was known already."""
        scope = Scope(self.record.owner, self.record.session)
        fresh = await self._backburner.inbox.acknowledge([self.key], scope) == 1
        if fresh:
            self.record = replace(
                self.record, state=SignalState.DELIVERED, delivered_at=clock.now()
            )
        return fresh

    def document(self) -> dict[str, Any]:
        """The signal as JSON."""
        return signal_document(self.record)


def settings_from_environment() -> Settings:
    """The settings; a variable that says nothing sensible is a usage error."""
    try:
        return Settings.from_environment()
    except ValueError as error:
        raise UsageError(str(error)) from error
