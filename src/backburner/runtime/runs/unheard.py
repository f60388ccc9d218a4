"""Runs that the record has as begun here, and that do not run: the others take this worker for the

one who has them, for as long as it lives.

Mostly the record was lost before it could say that they have begun: whoever waited for that answer
was told of an error. It may also say so late, after a commit that hung; or be one of before, which
has not heard how they ended, because another server took the place of the first one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection

from backburner.model.ending import Ending
from backburner.model.errors import StoreAway
from backburner.model.home import Home
from backburner.model.states import ErrorKind
from backburner.model.task import Task
from backburner.model.values import value
from backburner.runtime.unstarted import leave_result
from backburner.store.protocol import Store

_REASON = "the database was lost before it could be begun"
_NOTHING_RUNS = "on record as begun here, where nothing of it runs"


@value
class _Writing:
    """One of them. A class, since a generator takes three times as long, for each run."""

    noted: dict[str, bool]
    task_id: str
    claimed: bool
    before: bool | None
    """What was noted of an earlier try, which may be the one that is on record."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: object, __: object) -> None:
        if isinstance(error, StoreAway | asyncio.CancelledError):
            self.noted[self.task_id] = self.claimed
        elif self.before is not None:
            self.noted[self.task_id] = self.before


class Unheard:
    """Of the runs of one worker. ``give_up`` is for those of which nothing was noted here."""

    def __init__(
        self, store: Store, home: Home, give_up: Callable[[Task, str], Awaitable[None]]
    ) -> None:
        self._store = store
        self._home = home
        self._give_up = give_up
        self._unknown: Collection[tuple[str, int]] = ()
        """What the record had as begun here at the last look, and nobody here knew of."""
        self._claimed: dict[str, bool] = {}
        """By id, whether it was waiting in the record, and not started here."""

    def writing(self, task_id: str, *, claimed: bool) -> "_Writing":
        """While it is put on record as running. An earlier try is not seen to meanwhile."""
        return _Writing(self._claimed, task_id, claimed, self._claimed.pop(task_id, None))

    async def see_to(
        self, worker_id: str, running: Callable[[], Collection[str | None]]
    ) -> list[Task]:
        """Give back what was claimed, and end what was started. What was not noted is given up at

        the second look: it may be about to begin, or have ended while the first one was made.
        Answers what the record has as begun here.
        """
        noted = [*self._claimed]  # before the look at the record, which knows of all of them
        kept = await self._store.tasks_of_worker(worker_id)
        known = running() if kept else ()
        unknown = {(task.id, task.attempt): task for task in kept if task.id not in known}
        before, self._unknown = self._unknown, unknown.keys()
        for attempt, task in unknown.items():
            claimed = self._claimed.get(task.id)
            if claimed is not None:
                await self._see_to_noted(task, claimed=claimed)
            elif attempt in before:
                await self._give_up(task, _NOTHING_RUNS)
        for task_id in noted:
            self._claimed.pop(task_id, None)
        return kept

    async def _see_to_noted(self, task: Task, *, claimed: bool) -> None:
        if claimed:
            await self._store.requeue(task.id, task.attempt, _REASON)
            return
        ending = Ending.failed(ErrorKind.SPAWN, _REASON)
        if ended := await self._store.finish(task.id, task.attempt, ending):
            leave_result(self._home, ended)
