"""The same Backburner without `await`, for scripts and for frameworks that are not asynchronous.

One door: an event loop in a thread of its own, and every call handed through to it. Safe to call
from several threads. `from backburner.sync import Backburner`.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from backburner import app
from backburner.model.channels import Channel
from backburner.model.ending import TaskError
from backburner.model.errors import UsageError
from backburner.model.events import Event
from backburner.model.limits import (
    DEFAULT_GRACE_S,
    DEFAULT_MAX_RUNTIME_S,
    DEFAULT_OWNER,
    DEFAULT_SESSION,
    OUTPUT_MAX_CHARS,
    Settings,
)
from backburner.model.order import Queue
from backburner.model.questions import Question
from backburner.model.signals import INBOX, SignalKind, SignalState
from backburner.model.states import State
from backburner.model.task import Task as TaskRecord
from backburner.runtime.tasks import Until
from backburner.sync.portal import Portal
from backburner.work.log.read import Chunk, Streams


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

    def session(self, name: str = DEFAULT_SESSION, *, owner: str = DEFAULT_OWNER) -> "Session":
        """A conversation, and the tasks that belong to it."""
        return Session(self._door, self._inner.session(name, owner=owner))

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


class Session:
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

    def task(self, reference: str) -> "Task":
        """A task by its id, or by enough of it to be the only one."""
        return Task(self._portal, self._portal.call(self._inner.task(reference)))

    def tasks(
        self, *, limit: int = 50, states: Sequence[State] = (), before: int | None = None
    ) -> list["Task"]:
        """Tasks of this session, newest first."""
        found = self._portal.call(self._inner.tasks(limit=limit, states=states, before=before))
        return [Task(self._portal, task) for task in found]

    def signals(self, *, follow: bool = True) -> Iterator["Signal"]:
        """What the session is to be told, as it happens."""
        for signal in self._portal.iterate(self._inner.signals(follow=follow)):
            yield Signal(self._portal, signal)

    def told(
        self,
        *,
        states: Sequence[SignalState] = (),
        channel: str | None = INBOX,
        after: int = 0,
        limit: int = 100,
    ) -> list["Signal"]:
        """What the session was and is to be told, without claiming anything."""
        work = self._inner.told(states=states, channel=channel, after=after, limit=limit)
        return [Signal(self._portal, signal) for signal in self._portal.call(work)]

    def wish(self, kinds: Collection[SignalKind] | None) -> None:
        """What the session wishes to be told from now on: these kinds, none, or None for all."""
        self._portal.call(self._inner.wish(kinds))

    def wished(self) -> frozenset[SignalKind] | None:
        """What the session wishes to be told; None for everything."""
        return self._portal.call(self._inner.wished())


class Task:
    """See `backburner.Task`."""

    def __init__(self, portal: Portal, inner: app.Task) -> None:
        self._portal = portal
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def record(self) -> TaskRecord:
        """As of the last call."""
        return self._inner.record

    @property
    def id(self) -> str:
        """Its name."""
        return self._inner.id

    @property
    def state(self) -> State:
        """As of the last call."""
        return self._inner.state

    @property
    def exit_code(self) -> int | None:
        """Of a process that ended by itself."""
        return self._inner.exit_code

    @property
    def error(self) -> TaskError | None:
        """Why it failed."""
        return self._inner.error

    @property
    def result(self) -> Any:
        """What it returned."""
        return self._inner.result

    def refresh(self) -> Self:
        """Look again."""
        self._portal.call(self._inner.refresh())
        return self

    def wait(self, timeout: float | None = None, *, until: Until = "end") -> Self:
        """Wait for the end, or until it is ready. TimeIsUp, NeverReady."""
        self._portal.call(self._inner.wait(timeout, until=until))
        return self

    def stop(self, *, force: bool = False, grace: float = DEFAULT_GRACE_S) -> Self:
        """End it and everything it started; returns when nothing is left."""
        self._portal.call(self._inner.stop(force=force, grace=grace))
        return self

    def send(self, text: str, *, question: str | None = None, raw: bool = False) -> str | None:
        """Answer its oldest open question, or this one; else its standard input gets a line."""
        return self._portal.call(self._inner.send(text, question=question, raw=raw))

    def send_eof(self) -> None:
        """Its standard input has come to its end."""
        self._portal.call(self._inner.send_eof())

    def questions(self) -> list[Question]:
        """What it has asked in its present attempt, oldest first."""
        return self._portal.call(self._inner.questions())

    def output(
        self,
        *,
        since: str | None = None,
        max_chars: int | None = OUTPUT_MAX_CHARS,
        grep: str | None = None,
        last_lines: int | None = None,
        raw: bool = False,
        streams: Streams = "both",
    ) -> Chunk:
        """What it has written since the cursor ``since``."""
        work = self._inner.output(
            since=since,
            max_chars=max_chars,
            grep=grep,
            last_lines=last_lines,
            raw=raw,
            streams=streams,
        )
        return self._portal.call(work)

    def cursor_ago(self, seconds: float) -> str | None:
        """The cursor of what was written by then, to the nearest earlier mark."""
        return self._inner.cursor_ago(seconds)

    def events(self, *, after: int = 0, follow: bool = True) -> Iterator[Event]:
        """What happened to it, up to its end."""
        return self._portal.iterate(self._inner.events(after=after, follow=follow))

    def rerun(self, *, id: str | None = None) -> "Task":
        """The same command again as a new task."""
        return Task(self._portal, self._portal.call(self._inner.rerun(id=id)))

    def document(self) -> dict[str, Any]:
        """The task as JSON."""
        return self._inner.document()


class Signal:
    """See `backburner.Signal`."""

    def __init__(self, portal: Portal, inner: app.Signal) -> None:
        self._portal = portal
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def key(self) -> str:
        """The same for every repetition of this signal."""
        return self._inner.key

    @property
    def task(self) -> str:
        """The task's id."""
        return self._inner.task

    @property
    def text(self) -> str:
        """What happened, in a sentence."""
        return self._inner.text

    def ack(self) -> bool:
        """It was dealt with. False when that was known already."""
        return self._portal.call(self._inner.ack())

    def resend(self) -> bool:
        """Send one again that failed or was given up. False where that is not possible."""
        return self._portal.call(self._inner.resend())

    def document(self) -> dict[str, Any]:
        """The signal as JSON."""
        return self._inner.document()
