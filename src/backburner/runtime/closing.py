"""Closing an attempt of a process that is over: its files, its end in the record, and its children.

Each end reaches the record, also when the disk is full for a while.
"""

import contextlib
import os
from collections.abc import Awaitable, Callable
from functools import partial

from backburner.model.ending import Ending
from backburner.model.home import Home
from backburner.model.task import Place, Task
from backburner.runtime.children import stop_children
from backburner.runtime.ordering import last_of_several, next_try_at
from backburner.runtime.scribe import NOT_TAKEN, UNRECORDABLE, Scribe
from backburner.runtime.unstarted import leave_result
from backburner.runtime.verdict import beside
from backburner.store.protocol import Output, Store
from backburner.work import handover
from backburner.work.process import condition


class Closing:
    """Of the attempts of one worker. ``release`` gives back what a place had."""

    def __init__(
        self,
        store: Store,
        home: Home,
        scribe: Scribe,
        release: Callable[[Place | None], None],
        report: Callable[[str], None],
    ) -> None:
        self._store = store
        self._home = home
        self._scribe = scribe
        self._release = release
        self._report = report

    async def finish(
        self, task: Task, ending: Ending, *, output: Output | None = None, leftovers: int = 0
    ) -> None:
        """It has run, and will not run again."""
        # Before the record says so: whoever hears of the end finds it there, and a keeper that is
        # killed in between leaves a task that the next one ends, and not one without its result.
        written = self._put_result(task, ending)
        if not leftovers:  # after that, which says what its numbers said
            self._release(task.place)
        told = last_of_several(task, ending)
        handover.discard(self._home, task.id, task.hand_over)  # it will not run again
        finished = await self._insist(
            task,
            told,
            lambda told: self._store.finish(
                task.id, task.attempt, told, output=output, leftovers=leftovers
            ),
        )
        if not written:
            self._put_result(task, ending)  # there may be room now
        if finished is not None:  # else others have ended it: what is in its session now is theirs
            await self._stop_children(task)

    async def fail_try(self, task: Task, ending: Ending) -> bool:
        """This attempt has failed, and a further one will be made. False: somebody stopped it."""
        self._put_result(task, ending)
        self._release(task.place)
        due = next_try_at(task, self._store.now())
        failed = await self._insist(
            task, ending, lambda told: self._store.fail_try(task.id, task.attempt, told, due)
        )
        return failed is not None

    async def refuse(self, task: Task, ending: Ending) -> None:
        """End what never began, unless that is no longer ours to say."""
        if await self.was_ended(task):
            return
        written = self._put_result(task, ending)
        told = last_of_several(task, ending)
        refused = await self._insist(
            task, told, lambda told: self._store.refuse(task.id, task.attempt, told)
        )
        if refused is None:  # ended by others in this very moment, or another machine's
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._home.attempt(task.id, task.attempt).result)
            if not await self.was_ended(task):
                return
        elif not written:
            self._put_result(task, ending)  # there may be room now
        # Not before: until the record says so, the next keeper would need it.
        handover.discard(self._home, task.id, task.hand_over)
        await self._stop_children(task)

    async def _insist(
        self, task: Task, ending: Ending, write: Callable[[Ending], Awaitable[Task | None]]
    ) -> Task | None:
        """Tell the record of an end that a job has partly in its hands: it ends in any case."""
        try:
            return await self._scribe.insist(partial(write, ending))
        except NOT_TAKEN as error:
            self._report(f"{task.id}: its end cannot be recorded as it is: {error}")
        self._put_result(task, UNRECORDABLE)
        return await self._scribe.insist(partial(write, UNRECORDABLE))

    async def _stop_children(self, task: Task) -> None:
        await self._scribe.insist(partial(stop_children, self._store, self._home, task))

    async def was_ended(self, task: Task) -> bool:
        """Whether a stop has ended it before its start; the files say so then, and nothing else."""
        record = await self._scribe.insist(lambda: self._store.get(task.id))
        if record is None or not record.state.terminal:
            return False
        leave_result(self._home, record)
        return True

    def _put_result(self, task: Task, ending: Ending) -> bool:
        folder = self._home.attempt(task.id, task.attempt)
        try:
            condition.settle(folder, ending, beside=beside(task, folder))
        except (OSError, *NOT_TAKEN) as error:
            self._report(f"{task.id}: result.json was not written: {error}")
            return False
        return True
