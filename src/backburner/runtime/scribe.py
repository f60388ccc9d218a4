"""Writing what happens to jobs into the record, also when the disk is full for a while."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from backburner.model.ending import Ending
from backburner.model.errors import StoreClosed, StoreError
from backburner.model.events import EventKind
from backburner.model.states import ErrorKind
from backburner.model.task import EndedFor, Task
from backburner.store.protocol import Facts, Store

Result = TypeVar("Result")

UNRECORDABLE = Ending.failed(ErrorKind.ERROR, "what it gave back cannot be recorded")
"""The end of what has one that the record does not take."""
NOT_TAKEN = (TypeError, ValueError, RecursionError)
"""What is raised then: not by what a record lacks, and so by every further try."""

_FIRST_S = 0.05
_LONGEST_S = 5.0


async def insist(change: Callable[[], Awaitable[Result]], report: Callable[[str], None]) -> Result:
    """Write to the record, again and again while the disk is full or the record is locked."""
    delay = _FIRST_S
    while True:
        try:
            return await change()
        except StoreClosed:
            raise  # for good
        except StoreError as error:
            report(f"will try again in {delay:.2f} s: {error}")
        await asyncio.sleep(delay)
        delay = min(delay * 2, _LONGEST_S)


async def whole(work: Awaitable[Result]) -> Result:
    """Do it to its end, also where the caller is cancelled meanwhile.

    For a write and what has to follow it: it may be on disk before whoever waits for it hears so.
    """
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        doing.add_done_callback(_heard)
        if not doing.done():
            await asyncio.wait([doing])
        raise


def _heard(done: "asyncio.Future[Any]") -> None:
    """Nobody is there any more to whom its failure could be told."""
    if not done.cancelled():
        done.exception()


class Scribe:
    """Writes for one worker. ``report`` is the keeper's own log."""

    def __init__(self, store: Store, report: Callable[[str], None]) -> None:
        self._store = store
        self._report = report
        self._beside: set[asyncio.Task[bool]] = set()

    async def insist(self, change: Callable[[], Awaitable[Result]]) -> Result:
        """See `insist`."""
        return await insist(change, self._report)

    def say(self, task: Task, text: str) -> None:
        """Something worth telling about a task: in the record and in the log."""
        self._report(f"{task.id}: {text}")
        self.note_beside(task, EventKind.DETAIL, detail=text)

    def note_beside(self, task: Task, kind: EventKind, *, detail: str | None = None) -> None:
        """Note it without waiting for that."""
        noted = asyncio.create_task(
            self.insist(lambda: self._store.note(task.id, task.attempt, kind, Facts(detail=detail)))
        )
        self._beside.add(noted)
        noted.add_done_callback(self._beside.discard)

    async def begin_ending(self, task: Task, reason: EndedFor) -> None:
        """Tried once only: a full disk must not keep a job from being ended."""
        try:
            await self._store.begin_ending(task.id, task.attempt, reason)
        except StoreError as error:
            self._report(f"{task.id}: is ended without a word on disk: {error}")


class Entry:
    """The chronicle of one job."""

    def __init__(self, scribe: Scribe, task: Task) -> None:
        self._scribe = scribe
        self._task = task

    def say(self, text: str) -> None:
        """Something worth telling."""
        self._scribe.say(self._task, text)

    async def begin_ending(self, reason: EndedFor) -> None:
        """The next thing is a signal to its processes."""
        await self._scribe.begin_ending(self._task, reason)
