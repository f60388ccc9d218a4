"""The handle on one task."""

import os
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from backburner.app.acting import acts, said_only, unrecorded
from backburner.model import clock
from backburner.model.ending import TaskError
from backburner.model.events import Event
from backburner.model.limits import (
    DEFAULT_GRACE_S,
    OUTPUT_MAX_CHARS,
)
from backburner.model.policy import FREE, Action, Policy
from backburner.model.questions import Question
from backburner.model.states import State
from backburner.model.task import Task as TaskRecord
from backburner.runtime import sending
from backburner.runtime.again import assignment_again
from backburner.runtime.ordering import order_again
from backburner.runtime.output import cursor_at, read_task_output
from backburner.runtime.tasks import StartOptions, Until
from backburner.store.protocol import Scope
from backburner.work.log.read import Chunk, Streams

if TYPE_CHECKING:
    from backburner.app.home import Backburner


class Task:
    """A handle on one task. Its record is as of the last call; `refresh` brings it up to date."""

    def __init__(
        self, backburner: "Backburner", record: TaskRecord, *, policy: Policy = FREE
    ) -> None:
        self._backburner = backburner
        self.record = record
        self.policy = policy
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

    async def wait(self, timeout: float | None = None, *, until: Until = "end") -> "Task":
        """Wait for the end, without polling. TimeIsUp after ``timeout`` seconds; it goes on.

        With ``until="ready"``, until it is or was ready; NeverReady where it ends before, and
        UsageError where it was started without such a condition.
        """
        self.record = await self._backburner.tasks.wait(self.id, self._scope, timeout, until=until)
        return self

    @acts(Action.STOP)
    async def stop(self, *, force: bool = False, grace: float = DEFAULT_GRACE_S) -> "Task":
        """End it and everything it started: TERM, ``grace`` seconds, KILL; KILL at once with

        ``force``. Returns when nothing is left.
        """
        grace_s = 0.0 if force else grace
        self.record = await self._backburner.tasks.stop(self.id, self._scope, grace_s=grace_s)
        return self

    @acts(Action.SEND)
    async def send(
        self, text: str, *, question: str | None = None, raw: bool = False
    ) -> str | None:
        """Answer its oldest open question, or this one; else its standard input gets a line; else,

        where it is no shell job, it gets a message. Answers which question, None for the others.
        Who answers something gives its ``question``: somebody else may have answered it already,
        and then the oldest is another one, or there is none and the text is input.

        Whether another session may stop the task is answered by its ``question`` only, with yes or
        no; while nothing else is asked, input goes ``raw``, which adds no line break. UsageError
        where the answer does not fit, NobodyAsked.
        """
        return await sending.send(
            self._backburner.store,
            self._backburner.home,
            self.id,
            self._scope,
            text,
            give=self._backburner.tasks.give_input,
            question=question,
            raw=raw,
        )

    @acts(Action.SEND)
    async def send_eof(self) -> None:
        """Its standard input has come to its end."""
        backburner = self._backburner
        await sending.send_eof(
            backburner.store, self.id, self._scope, give=backburner.tasks.give_input
        )

    async def questions(self) -> list[Question]:
        """What it has asked in its present attempt, oldest first; `open` where nobody answered."""
        await self.refresh()
        return await self._backburner.store.questions(self.id)

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
        await self._backburner.tasks.fetch_output(self.record)
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

    async def artifact(self, name: str) -> str:
        """The path of a file that it has added, on this machine: brought here first where the task

        ran on another one. NotFound; ArtifactsUnreachable where it cannot be read from here.
        """
        await self.refresh()
        fd = await self._backburner.tasks.open_artifact(self.record, name)
        try:
            return os.readlink(f"/proc/self/fd/{fd}")
        finally:
            os.close(fd)

    async def cursor_ago(self, seconds: float) -> str | None:
        """The cursor of what was written by then, to the nearest earlier mark."""
        await self._backburner.tasks.fetch_output(self.record)
        at = clock.now() - round(seconds * clock.SECOND)
        return cursor_at(self._backburner.home, self.record, at)

    async def events(self, *, after: int = 0, follow: bool = True) -> AsyncIterator[Event]:
        """What happened to it, from the beginning or after an event's number, up to its end."""
        async for event in self._backburner.tasks.events(
            self.id, self._scope, after=after, follow=follow
        ):
            yield event

    @acts(Action.START)
    async def rerun(self, *, id: str | None = None) -> "Task":
        """The same command or call again as a new task, with this process's environment."""
        record = await self._backburner.tasks.start_process(
            self._scope,
            assignment_again(self.record, self._backburner.settings),
            StartOptions(
                self.record.title,
                self.record.max_runtime_s,
                id,
                self.record.parent,
                notify=self.record.spec.get("notify"),
                order=order_again(self.record),
            ),
        )
        return Task(self._backburner, record)

    async def _played(self, name: str, given: Mapping[str, Any]) -> Any:  # noqa: ARG002 - see `acting.Acting`
        """What a dry run answers to one of the methods above."""
        if name == "rerun":
            from backburner.app.unrecorded import UnrecordedTask

            again = unrecorded(self._scope, self.record.kind, self.record.title)
            return UnrecordedTask(self._backburner, again, policy=self.policy)
        if name == "stop":
            self.record = said_only(self.record, "stop")
            return self
        return None

    def document(self) -> dict[str, Any]:
        """The task as JSON."""
        return self._backburner.tasks.describe(self.record)
