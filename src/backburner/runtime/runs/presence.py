"""That a worker is there: its name, the lock that tells whether it lives, and what it leaves for
those that take up its work.

None of it exists before the first task is written: an application that only calls tools within
their budgets leaves no trace.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable

from backburner.model import clock
from backburner.model.errors import BackburnerError, StoreUnusable
from backburner.model.home import Home
from backburner.model.task import Place
from backburner.model.worker import Worker, new_worker_id
from backburner.runtime.runs.lock import WorkerLock
from backburner.store.protocol import Store
from backburner.work import handover
from backburner.work.process.identity import boot_id
from backburner.work.python import worker_launch


class Presence:
    """Of one worker."""

    def __init__(self, store: Store, home: Home, report: Callable[[str], None]) -> None:
        self._store = store
        self._home = home
        self._report = report
        self.id = new_worker_id()
        self._boot_id = boot_id()
        self._pid = os.getpid()
        self._lock: WorkerLock | None = None
        self._hand_over: str | None = None
        self._registering: asyncio.Future[None] | None = None

    @property
    def worker(self) -> Worker:
        """As the record knows it."""
        return Worker(self.id, self._boot_id, self._pid, self._hand_over or None)

    def place(self, started_boot: int | None = None) -> Place:
        """Where an attempt runs that this worker carries out, from now on or since then."""
        began = clock.boot_now() if started_boot is None else started_boot
        return Place(self._boot_id, began, self._pid, worker=self.id)

    async def begin(self, *, importable: bool = False) -> None:
        """Before a task is written: be known, and leave what the keeper can take it up with."""
        if self._lock is None:
            if self._registering is None:
                self._registering = asyncio.ensure_future(self._register())
            await asyncio.shield(self._registering)
        if importable and self._hand_over is None:
            await self._leave_hand_over()

    async def _register(self) -> None:
        try:
            lock = WorkerLock(self._home, self.id)
            try:
                await self._store.register_worker(self.worker)
            except BackburnerError:
                lock.release()
                raise
        except (BackburnerError, OSError) as error:
            self._registering = None  # the next one who needs it tries again
            if isinstance(error, BackburnerError):
                raise
            raise StoreUnusable(f"{self._home.workers} cannot be used: {error}") from error
        self._lock = lock

    async def _leave_hand_over(self) -> None:
        """So that the keeper can take up, in a process, what others can import (E11)."""
        self._hand_over = ""
        try:
            self._hand_over = handover.leave(self._home, self.id, worker_launch(os.getcwd()))
        except OSError as error:
            self._report(f"runs of this application cannot be taken up by the keeper: {error}")
            return
        await self._store.register_worker(self.worker)

    async def end(self) -> None:
        """It has gone in order, and nothing of it is left to see to."""
        if self._registering is not None:  # it may be under way
            await asyncio.wait([self._registering])
        if self._lock is not None:
            with contextlib.suppress(BackburnerError):
                await self._store.remove_worker(self.id)
            handover.discard(self._home, self.id, self._hand_over or None)
            self._lock.release()
