"""How long runs may take: one alarm for all of a worker's, at the earliest time that is up.

Most run times are a day and most runs are short, so an alarm for each would hardly ever ring, and
cost as much as to make the run.
"""

import asyncio
from collections.abc import Mapping

from backburner.model.task import EndedFor
from backburner.runtime.runs.run import Run


class RunTimes:
    """Of the ``runs`` of one worker."""

    def __init__(self, runs: Mapping[str, Run]) -> None:
        self._runs = runs
        self._loop = asyncio.get_running_loop()
        self._alarm: asyncio.TimerHandle | None = None

    def limit(self, run: Run, seconds: float) -> None:
        """End it when this time is up."""
        run.deadline = self._loop.time() + seconds
        self._ring_by(run.deadline)

    def _ring_by(self, deadline: float) -> None:
        if self._alarm is None or deadline < self._alarm.when():
            self.close()
            self._alarm = self._loop.call_at(deadline, self._look)

    def _look(self) -> None:
        self._alarm = None
        now = self._loop.time()
        for run in [*self._runs.values()]:
            if run.deadline is None:
                continue
            if run.deadline <= now:
                run.end(EndedFor.TIMEOUT, 0.0)
            else:
                self._ring_by(run.deadline)

    def close(self) -> None:
        """No more alarms."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
