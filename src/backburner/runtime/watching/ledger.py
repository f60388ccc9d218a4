"""The record of one attempt, as those who watch it read and write it."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from backburner.model.events import Event, EventKind
from backburner.model.states import State
from backburner.model.task import Task
from backburner.store.protocol import Facts, Store

Result = TypeVar("Result")

ATTEMPT = "attempt"
"""Under this name an event of ours says which attempt it is of."""


class Insist(Protocol):
    """Turns to the record, again and again while the disk is full or the record is locked."""

    async def __call__(self, change: Callable[[], Awaitable[Result]]) -> Result:
        """What comes of it."""
        ...


class Ledger:
    """Notes what was seen of a job, and knows what a keeper before us has seen."""

    def __init__(self, store: Store, task: Task, insist: Insist, *, adopted: bool) -> None:
        self._store = store
        self.task = task
        self._insist = insist
        self.adopted = adopted
        """Another keeper has started it: it may have done something that nobody has looked at."""

    def ago(self, event: Event) -> int:
        """How long ago that was."""
        return max(0, self._store.now() - event.at)

    async def note(self, kind: EventKind, facts: Facts) -> None:
        """On disk when this returns."""
        task = self.task
        await self._insist(lambda: self._store.note(task.id, task.attempt, kind, facts))

    async def last(self, kind: EventKind) -> Event | None:
        """The last event of this kind and attempt."""
        found: Event | None = None
        after = 0
        while events := await self._events(after):
            after = events[-1].number
            for event in events:
                if event.kind is kind and event.data.get(ATTEMPT) == self.task.attempt:
                    found = event
        return found

    async def _events(self, after: int) -> list[Event]:
        return await self._insist(lambda: self._store.events(self.task.id, after=after))

    async def waits_for_answer(self) -> bool:
        """Whether the job has asked something, and nobody has answered yet."""
        task = await self._insist(lambda: self._store.get(self.task.id))
        return task is not None and task.state is State.INPUT_REQUIRED
