"""The handle on one task, without `await`."""

from collections.abc import Iterator
from typing import Any, Self

from backburner import app
from backburner.model.ending import TaskError
from backburner.model.events import Event
from backburner.model.limits import DEFAULT_GRACE_S, OUTPUT_MAX_CHARS
from backburner.model.questions import Question
from backburner.model.states import State
from backburner.model.task import Task as TaskRecord
from backburner.runtime.tasks import Until
from backburner.sync.portal import Portal
from backburner.work.log.read import Chunk, Streams


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

    def artifact(self, name: str) -> str:
        """The path of a file that it has added, on this machine."""
        return self._portal.call(self._inner.artifact(name))

    def cursor_ago(self, seconds: float) -> str | None:
        """The cursor of what was written by then, to the nearest earlier mark."""
        return self._portal.call(self._inner.cursor_ago(seconds))

    def events(self, *, after: int = 0, follow: bool = True) -> Iterator[Event]:
        """What happened to it, up to its end."""
        return self._portal.iterate(self._inner.events(after=after, follow=follow))

    def rerun(self, *, id: str | None = None) -> "Task":
        """The same command again as a new task."""
        return Task(self._portal, self._portal.call(self._inner.rerun(id=id)))

    def document(self) -> dict[str, Any]:
        """The task as JSON."""
        return self._inner.document()
