"""Runs that go on here no more, though nobody has asked for their end.

The application closes, or others took this process for dead and gave the attempt away. The call is
cancelled and nobody is told how it ended here: what becomes of the task is for the record to say.
"""

import asyncio
from collections.abc import Callable, Mapping

from backburner.model.home import Home
from backburner.model.task import Task
from backburner.model.worker import Worker
from backburner.runtime.runs.recovery import let_go
from backburner.runtime.runs.run import Run
from backburner.store.protocol import Store

HEEDS_S = 5.0
"""What a run gets for ending when it is cancelled."""

_LETTING_GO_S = 20.0
"""What the record gets then, as for any change of it: others see to what it does not hear of."""

CLOSED = "the application closed while it ran"


class LettingGo:
    """Of the ``runs`` of one worker, by their ids. ``gone`` is told of each that is let go of."""

    def __init__(
        self,
        store: Store,
        home: Home,
        runs: Mapping[str, Run],
        *,
        worker: Callable[[], Worker],
        gone: Callable[[Run], None],
        report: Callable[[str], None],
    ) -> None:
        self._store = store
        self._home = home
        self._runs = runs
        self._worker = worker
        self._gone = gone
        self._report = report

    async def abandon(self, run: Run) -> None:
        """End it as if this worker had died."""
        assert run.task is not None
        if await self._cut_off(run):
            await self.give_up(run.task, CLOSED)
            self._over(run)

    async def end_fenced_off(self, run: Run) -> None:
        """End it because its attempt is over in the record: this process was taken for dead."""
        assert run.task is not None
        if await self._cut_off(run):
            self._report(f"{run.task.id}: attempt {run.task.attempt} was fenced off, and is ended")
            self._over(run)

    async def give_up(self, task: Task, reason: str) -> None:
        """On record as running here, where nothing of it runs: record its end, or let another take

        it up.
        """
        try:
            async with asyncio.timeout(_LETTING_GO_S):
                await let_go(self._store, self._home, task, self._worker(), reason)
        except Exception as error:  # noqa: BLE001 - what else closes must not be kept from it
            self._report(f"{task.id}: is left to others: {str(error) or 'the record is away'}")

    def _over(self, run: Run) -> None:
        self._gone(run)
        run.end_is_recorded(None)

    async def _cut_off(self, run: Run) -> bool:
        """End it without telling anybody how. False where it has ended."""
        if self._runs.get(run.new.id) is not run or run.work is None or run.work.done():
            return False
        if run.abandoned:  # by somebody else, who sees to the rest
            return False
        run.abandoned = True
        run.work.cancel()
        run.quiet()
        await asyncio.wait([run.work], timeout=HEEDS_S)
        run.close_log()
        return True
