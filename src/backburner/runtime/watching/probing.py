"""Asking again and again whether a port, a file or an HTTP answer is there, until it is."""

import os
from collections.abc import Callable, Sequence

from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.task import Task
from backburner.model.watching import ReadyKind, ReadyWhen
from backburner.runtime.watching.ledger import Ledger
from backburner.runtime.watching.readiness import Readiness
from backburner.store.protocol import Facts
from backburner.work.probe.file import FileProbe
from backburner.work.probe.http import HttpProbe
from backburner.work.probe.port import PortProbe
from backburner.work.probe.probe import NOT_YET, Answer, Probe

# By the clock, because no event tells that somebody listens or answers: often at first, when most
# servers come up, and then rarely enough to cost nothing.
_FIRST_S = 0.05
_LONGEST_S = 1.0
_SLOWER = 1.5


class Probing:
    """Makes a job ready that does not say so in its output."""

    def __init__(self, probe: Probe, ledger: Ledger, readiness: Readiness) -> None:
        self._probe = probe
        self._ledger = ledger
        self._readiness = readiness
        self._remarked = False

    def look(self) -> None:
        """Nothing: what is looked for does not lie in the job's folder."""

    async def attend(self) -> None:
        """Until it is ready."""
        pause = _FIRST_S
        try:
            while not await self._is_ready():
                await self._probe.pause(pause)
                pause = min(pause * _SLOWER, _LONGEST_S)
        finally:
            self._probe.close()

    async def _is_ready(self) -> bool:
        try:
            answer = await self._probe.look()
        except OSError:  # too many open files, perhaps: the next look will tell
            answer = NOT_YET
        if answer.ready:
            await self._readiness.become(answer.text)
        else:
            await self._remark(answer)
        return answer.ready

    async def _remark(self, answer: Answer) -> None:
        """Once: why something that is there does not count."""
        if answer.text and not self._remarked:
            self._remarked = True
            await self._ledger.note(EventKind.DETAIL, Facts(detail=answer.text))

    async def conclude(self, ending: Ending) -> Ending:
        """A last look, for what outlives the job."""
        try:
            if self._probe.lasts and not self._readiness.met:
                await self._is_ready()
        finally:
            self._probe.close()
        return ending


def probe_for(ready: ReadyWhen, task: Task, processes: Callable[[], Sequence[int]]) -> Probe:
    """What to ask, for every condition but one on the output."""
    match ready.kind:
        case ReadyKind.PORT:
            return PortProbe(ready.port, processes)
        case ReadyKind.FILE:
            path = os.path.join(task.spec["cwd"], ready.value)
            return FileProbe(path, ready.value, task.started_at or task.created_at)
        case ReadyKind.HTTP:
            return HttpProbe(ready.value)
        case ReadyKind.OUTPUT:
            raise ValueError("output is read, and not asked for")
