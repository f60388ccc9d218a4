"""That a worker is there: its name, the sign that tells whether it lives, and what it leaves for
those that take up its work.

None of it exists before the first task is written: an application that only calls tools within
their budgets leaves no trace.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

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


class Presence(Protocol):
    """Of one worker."""

    @property
    def worker(self) -> Worker:
        """As the record knows it."""
        ...

    async def begin(self, *, importable: bool = False) -> None:
        """Before a task is written: be known, and be seen to if it dies.

        An ``importable`` tool may be left for a process that takes it up.
        """
        ...

    def look_again(self) -> None:
        """What it can carry out may be more than before."""
        ...

    async def said(self) -> None:
        """Wait until the record has that."""
        ...

    async def drain(self) -> None:
        """Take on nothing more that others have started."""
        ...

    async def end(self) -> None:
        """It has gone in order, and nothing of it is left to see to."""
        ...


class LockPresence:
    """In a home folder: a lock, which ends with the process."""

    def __init__(self, store: Store, home: Home, report: Callable[[str], None]) -> None:
        self._store = store
        self._home = home
        self._report = report
        self._worker = Worker(new_worker_id(), boot_id(), os.getpid())
        self._lock: WorkerLock | None = None
        self._hand_over: str | None = None
        self._registering: asyncio.Future[None] | None = None

    @property
    def worker(self) -> Worker:
        """See Presence.worker."""
        return self._worker

    async def begin(self, *, importable: bool = False) -> None:
        """See Presence.begin."""
        if self._lock is None:
            if self._registering is None:
                self._registering = asyncio.ensure_future(self._register())
            await asyncio.shield(self._registering)
        if importable and self._hand_over is None:
            await self._leave_hand_over()

    async def _register(self) -> None:
        try:
            lock = WorkerLock(self._home, self._worker.id)
            try:
                await self._store.register_worker(self._worker)
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
            launch = worker_launch(os.getcwd())
            self._hand_over = handover.leave(self._home, self._worker.id, launch)
        except OSError as error:
            self._report(f"runs of this application cannot be taken up by the keeper: {error}")
            return
        self._worker = replace(self._worker, hand_over=self._hand_over)
        await self._store.register_worker(self._worker)

    def look_again(self) -> None:
        """See Presence.look_again: the record itself is looked at."""

    async def said(self) -> None:
        """See Presence.said."""

    async def drain(self) -> None:
        """See Presence.drain: who closes does not look any more."""

    async def end(self) -> None:
        """See Presence.end."""
        if self._registering is not None:  # it may be under way
            await asyncio.wait([self._registering])
        if self._lock is not None:
            with contextlib.suppress(BackburnerError):
                await self._store.remove_worker(self._worker.id)
            handover.discard(self._home, self._worker.id, self._hand_over or None)
            self._lock.release()


def place_of(worker: Worker, started_boot: int | None = None) -> Place:
    """Where an attempt runs that this worker carries out, from now on or since then."""
    began = clock.boot_now() if started_boot is None else started_boot
    return Place(worker.boot_id, began, worker.pid, worker=worker.id)
