"""The same Backburner without `await`, for scripts and for frameworks that are not asynchronous.

One door: an event loop in a thread of its own, and every call handed through to it. Safe to call
from several threads. `from backburner.sync import Backburner`.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from backburner import app
from backburner.model.ending import TaskError
from backburner.model.errors import UsageError
from backburner.model.events import Event
from backburner.model.limits import (
    DEFAULT_GRACE_S,
    DEFAULT_MAX_RUNTIME_S,
    OUTPUT_MAX_CHARS,
    Settings,
)
from backburner.model.signals import SignalState
from backburner.model.states import State
from backburner.model.task import Task as TaskRecord
from backburner.work.log.read import Chunk, Streams

Result = TypeVar("Result")


class _Portal:
    """An event loop in a thread, and the way into it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="backburner-portal", daemon=True
        )
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run it there, and wait for it here."""
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()  # Ctrl-C here must not leave it running there
            raise

    def iterate(self, stream: AsyncIterator[Result]) -> Iterator[Result]:
        """An iterator over what comes out of it."""

        async def following() -> tuple[bool, Result | None]:
            try:
                return True, await anext(stream)
            except StopAsyncIteration:
                return False, None

        async def close() -> None:
            closing = getattr(stream, "aclose", None)
            if closing is not None:
                await closing()

        try:
            while True:
                more, value = self.call(following())
                if not more:
                    return
                yield value  # pyright: ignore[reportReturnType]  # a value where there is more
        finally:
            self.call(close())

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Backburner:
    """See `backburner.Backburner`; open inside `with Backburner.open()`."""

    def __init__(self, inner: app.Backburner) -> None:
        self._inner = inner
        self._portal: _Portal | None = None

    @classmethod
    def open(
        cls, home: str | os.PathLike[str] | None = None, *, settings: Settings | None = None
    ) -> Self:
        """The Backburner in this home folder: given, or BACKBURNER_HOME, or the user's own."""
        return cls(app.Backburner.open(home, settings=settings))

    def __enter__(self) -> Self:
        portal = _Portal()
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
    def _door(self) -> _Portal:
        if self._portal is None:
            raise UsageError("this Backburner is not open", remedy="use: with Backburner.open()")
        return self._portal

    def session(
        self, name: str = app.DEFAULT_SESSION, *, owner: str = app.DEFAULT_OWNER
    ) -> "Session":
        """A conversation, and the tasks that belong to it."""
        return Session(self._door, self._inner.session(name, owner=owner))

    def prune(self, older_than: float | None = None) -> int:
        """Forget tasks that ended more than this many seconds ago. Answers how many."""
        return self._door.call(self._inner.prune(older_than))


class Session:
    """See `backburner.Session`."""

    def __init__(self, portal: _Portal, inner: app.Session) -> None:
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
        self, *, states: Sequence[SignalState] = (), after: int = 0, limit: int = 100
    ) -> list["Signal"]:
        """What the session was and is to be told, without claiming anything."""
        found = self._portal.call(self._inner.told(states=states, after=after, limit=limit))
        return [Signal(self._portal, signal) for signal in found]


class Task:
    """See `backburner.Task`."""

    def __init__(self, portal: _Portal, inner: app.Task) -> None:
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

    def wait(self, timeout: float | None = None) -> Self:
        """Wait for the end. TimeIsUp after ``timeout`` seconds; the task goes on."""
        self._portal.call(self._inner.wait(timeout))
        return self

    def stop(self, *, force: bool = False, grace: float = DEFAULT_GRACE_S) -> Self:
        """End it and everything it started; returns when nothing is left."""
        self._portal.call(self._inner.stop(force=force, grace=grace))
        return self

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

    def __init__(self, portal: _Portal, inner: app.Signal) -> None:
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

    def document(self) -> dict[str, Any]:
        """The signal as JSON."""
        return self._inner.document()
