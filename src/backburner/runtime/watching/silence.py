"""Noticing that a job has written nothing for too long: told once for each silence.

In boot time, which goes on while the machine sleeps and which nobody can set.
"""

import asyncio
import contextlib
import os

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.signals import NewSignal, SignalKind
from backburner.model.telling import silence_said, silent_text
from backburner.runtime.watching.ledger import ATTEMPT, Ledger
from backburner.store.protocol import Facts
from backburner.work.log.measure import measure

_LONGEST_NAP_S = 60.0
"""The loop's clock stands still while the machine sleeps: boot time is looked at in between."""


class SilenceWatch:
    """Attends to the streams of one job."""

    def __init__(self, paths: tuple[str, ...], silence_s: float, ledger: Ledger) -> None:
        self._paths = paths
        self._silence_s = silence_s
        self._ledger = ledger
        self._sizes = self._look_at_sizes()
        self._last = self._last_output()
        self._spoke = asyncio.Event()

    def look(self) -> None:
        """It may have written something."""
        sizes = self._look_at_sizes()
        if sizes != self._sizes:
            self._sizes = sizes
            self._last = clock.boot_now()
            self._spoke.set()

    async def attend(self) -> None:
        """Tell of each silence, until the job ends."""
        last = await self._ledger.last(EventKind.SILENT)
        told = None if last is None else last.data.get("position")
        while True:
            await self._until_silent()
            position = self._position()
            if position != told:
                told = position
                await self._tell(position)
            await self._spoke.wait()

    async def _until_silent(self) -> None:
        while True:
            self._spoke.clear()
            left = self._silence_s - (clock.boot_now() - self._last) / clock.SECOND
            if left > 0:
                await asyncio.sleep(min(left, _LONGEST_NAP_S))
                self.look()
            elif await self._ledger.waits_for_answer():
                self._last = clock.boot_now()  # it says nothing because nobody has answered it
            else:
                return

    async def _tell(self, position: list[int]) -> None:
        task = self._ledger.task
        # The position is the same for every keeper that sees this silence.
        where = ".".join(map(str, position))
        signal = NewSignal(
            SignalKind.SILENT,
            f"{task.id}:silent:{task.attempt}:{where}",
            silent_text(task.title, task.id, self._silence_s),
            {"silence_s": self._silence_s},
        )
        told = {"text": silence_said(self._silence_s), ATTEMPT: task.attempt, "position": position}
        await self._ledger.note(EventKind.SILENT, Facts(data=told, signal=signal))

    async def conclude(self, ending: Ending) -> Ending:
        """Nothing: an end is no silence."""
        return ending

    def _position(self) -> list[int]:
        """How much it has written."""
        try:
            return [measure(path, patience_s=0)[0] for path in self._paths]
        except OSError:
            return list(self._sizes)

    def _look_at_sizes(self) -> tuple[int, ...]:
        return tuple(status.st_size if status else 0 for status in map(_status, self._paths))

    def _last_output(self) -> int:
        """When it last wrote. A keeper that takes over can only read that from the files, whose

        times are of the wall clock.
        """
        now = clock.boot_now()
        place = self._ledger.task.place
        started = now if place is None else place.started_boot
        written = [status.st_mtime_ns // 1000 for status in map(_status, self._paths) if status]
        if not any(self._sizes) or not written:
            return started
        return max(started, now - max(0, clock.now() - max(written)))


def _status(path: str) -> os.stat_result | None:
    with contextlib.suppress(OSError):
        return os.stat(path)
    return None
