"""The handle on a task that a dry run would have started: it is nowhere on disk, and never runs."""

from collections.abc import AsyncIterator

from backburner.app.task import Task
from backburner.model.events import Event
from backburner.model.limits import OUTPUT_MAX_CHARS
from backburner.model.questions import Question
from backburner.runtime.tasks import Until
from backburner.work.log.read import Chunk, Streams


class UnrecordedTask(Task):
    """Answers at once, and always the same."""

    async def refresh(self) -> Task:
        """There is nothing to look at."""
        return self

    async def wait(self, timeout: float | None = None, *, until: Until = "end") -> Task:  # noqa: ARG002 - as of a task
        """There is nothing to wait for."""
        return self

    async def questions(self) -> list[Question]:
        """It asks nothing."""
        return []

    async def output(
        self,
        *,
        since: str | None = None,
        max_chars: int | None = OUTPUT_MAX_CHARS,  # noqa: ARG002 - as of a task
        grep: str | None = None,  # noqa: ARG002
        last_lines: int | None = None,  # noqa: ARG002
        raw: bool = False,  # noqa: ARG002
        streams: Streams = "both",  # noqa: ARG002
    ) -> Chunk:
        """It writes nothing."""
        return Chunk("", since or "", 0, 0, None, complete=True)

    async def events(self, *, after: int = 0, follow: bool = True) -> AsyncIterator[Event]:  # noqa: ARG002
        """Nothing happens to it."""
        for event in ():
            yield event
