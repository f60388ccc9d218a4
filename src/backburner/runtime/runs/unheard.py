"""Runs that the record may have as begun here, though it was lost before it could say so.

Whoever waited for that answer was told of an error, and nothing has begun; but the others take this
worker for the one who has it, for as long as it lives.
"""

import asyncio
from collections.abc import Container

from backburner.model.ending import Ending
from backburner.model.errors import StoreAway
from backburner.model.home import Home
from backburner.model.states import ErrorKind
from backburner.model.values import value
from backburner.runtime.unstarted import leave_result
from backburner.store.protocol import Store

_REASON = "the database was lost before it could be begun"


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
    """Of the runs of one worker."""

    def __init__(self, store: Store, home: Home) -> None:
        self._store = store
        self._home = home
        self._claimed: dict[str, bool] = {}
        """By id, whether it was waiting in the record, and not started here."""

    def writing(self, task_id: str, *, claimed: bool) -> "_Writing":
        """While it is put on record as running. An earlier try is not seen to meanwhile."""
        return _Writing(self._claimed, task_id, claimed, self._claimed.pop(task_id, None))

    async def see_to(self, worker_id: str, running: Container[str]) -> None:
        """Give back what was claimed, and end what was started."""
        noted = [*self._claimed]  # before the look at the record, which knows of all of them
        if not noted:
            return
        for task in await self._store.tasks_of_worker(worker_id):
            if task.id not in self._claimed or task.id in running:
                continue
            if self._claimed[task.id]:
                await self._store.requeue(task.id, task.attempt, _REASON)
                continue
            ending = Ending.failed(ErrorKind.SPAWN, _REASON)
            if ended := await self._store.finish(task.id, task.attempt, ending):
                leave_result(self._home, ended)
        for task_id in noted:
            self._claimed.pop(task_id, None)
