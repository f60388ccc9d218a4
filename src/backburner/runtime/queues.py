"""Queues as callers see them: made, paused, removed."""

from backburner.model.errors import Conflict, NotFound
from backburner.model.order import Queue, check_queue, no_such_queue
from backburner.runtime.tasks import TaskService
from backburner.store.protocol import Store


class QueueService:
    """What can be done with the queues of a home."""

    def __init__(self, store: Store, tasks: TaskService) -> None:
        self._store = store
        self._tasks = tasks

    async def put(self, name: str, width: int) -> Queue:
        """A new queue, or another width."""
        check_queue(name, width)
        await self._store.set_queue(name, width)
        await self._tasks.see_to_keeper()  # there may be room now for what waits
        return await self._get(name)

    async def pause(self, name: str, *, paused: bool) -> Queue:
        """Start nothing of it, or go on."""
        if not await self._store.pause_queue(name, paused=paused):
            raise await self._unknown(name)
        await self._tasks.see_to_keeper()
        return await self._get(name)

    async def remove(self, name: str) -> None:
        """Remove one that is not in use."""
        if await self._store.remove_queue(name):
            return
        found = await self._get(name)
        raise Conflict(
            f"queue {name!r} is in use: {found.running} of its tasks run and {found.waiting} wait",
            remedy="stop them, or wait for their ends",
        )

    async def _get(self, name: str) -> Queue:
        for queue in await self._store.queues():
            if queue.name == name:
                return queue
        raise await self._unknown(name)

    async def _unknown(self, name: str) -> NotFound:
        return no_such_queue(name, [queue.name for queue in await self._store.queues()])
