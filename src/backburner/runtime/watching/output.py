"""Watching what a job prints: for the line that says it is ready, and for lines to tell of.

Costs at most a fifth of a core, whatever is printed and looked for. When a flood outruns it, the
log has let go of what it has not seen, and that is said. A keeper that takes over goes on after
the last line that was told.
"""

import asyncio
import contextlib
import time
from typing import Any

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.signals import NewSignal, SignalKind
from backburner.model.telling import and_more, flood_text, match_text
from backburner.runtime.watching.ledger import ATTEMPT, Ledger
from backburner.runtime.watching.matches import EVERY_S, FLOOD, Found, Matches
from backburner.runtime.watching.readiness import Readiness
from backburner.runtime.watching.scan import Scanner, Seen
from backburner.store.protocol import Facts
from backburner.work.log.fold import strip_controls
from backburner.work.log.measure import measure

_SCAN_S = 0.05
_FLOOR_S = 0.01
_IDLE = 4
"""After a scan it rests for so many times as long as that took."""
_LONGEST_REST_S = 2.0
"""Where the disk was full, or the machine busy, a turn can have taken very long."""
_SETTLED_S = 0.1
"""A line without an end, such as a prompt, is looked at when nothing has come for so long."""
_LAST_SCANS_S = 2.0
"""For what is left when the job has ended: its end must not wait for a hostile pattern."""

_TOO_FAST = "its output came faster than it could be watched: some lines were not looked at"


class OutputWatch:
    """Attends to the streams of one job."""

    def __init__(
        self,
        paths: dict[str, str],
        scanner: Scanner,
        ledger: Ledger,
        readiness: Readiness | None,
    ) -> None:
        self._paths = paths
        self._scanner = scanner
        self._ledger = ledger
        self._readiness = readiness
        self._matches = Matches()
        self._bell = asyncio.Event()
        self._bell.set()  # what it wrote before we came
        self._begun = False
        self._said_too_fast = False
        self._turn: asyncio.Task[bool] | None = None

    def look(self) -> None:
        """There may be more."""
        self._bell.set()

    async def attend(self) -> None:
        """Until nothing is looked for any more."""
        settle = False
        while not self._begun or self._wanted:
            rung = await self._ring(_SETTLED_S if settle else None)
            began = time.monotonic()
            self._turn = asyncio.create_task(self._take_turn(unfinished=not rung))
            # The job may end at this moment: a turn that tells of something is not cut off.
            more = await asyncio.shield(self._turn)
            if more:
                self._bell.set()
            settle = rung and self._scanner.unfinished
            rest = _IDLE * (time.monotonic() - began)
            await asyncio.sleep(min(max(_FLOOR_S, rest), _LONGEST_REST_S))

    @property
    def _wanted(self) -> bool:
        return self._scanner.ready is not None or self._scanner.match is not None

    async def _ring(self, settle_s: float | None) -> bool:
        """Wait for output, for matches that are due, or for a line to settle. Whether it was

        output.
        """
        due = self._matches.due_in(clock.boot_now())
        waits = [seconds for seconds in (due, settle_s) if seconds is not None]
        try:
            async with asyncio.timeout(min(waits, default=None)):
                await self._bell.wait()
        except TimeoutError:
            return False
        self._bell.clear()
        return True

    async def _take_turn(self, *, unfinished: bool) -> bool:
        """One scan, and telling of what it found; whether it stopped before the end."""
        await self._begin()
        seen = await asyncio.to_thread(self._scanner.scan, _SCAN_S, unfinished=unfinished)
        await self._deal_with(seen)
        if self._matches.due_in(clock.boot_now()) == 0:
            await self._tell()
        return seen.more

    async def _begin(self) -> None:
        """Find out how far a keeper before us came."""
        if self._begun:
            return
        if self._readiness is not None and self._readiness.met:
            self._scanner.ready = None
        places: dict[str, list[int]] = {}
        if self._scanner.match is not None:
            last = await self._ledger.last(EventKind.MATCH)
            if last is not None:
                places = last.data.get("places", {})
                ago = self._ledger.ago(last)
                if ago < EVERY_S * clock.SECOND:
                    self._matches.told(clock.boot_now() - ago)
                if last.data.get("stopped"):
                    self._scanner.match = None
        known = {name: _length(path) for name, path in self._paths.items()}
        self._scanner.begin(places, known if self._ledger.adopted else {})
        self._begun = True

    async def _deal_with(self, seen: Seen) -> None:
        if seen.ready is not None and self._readiness is not None:
            line = shown_line(seen.ready.text)
            self._scanner.ready = None
            await self._readiness.become(f"it printed: {line}", {"line": seen.ready.text})
        now = clock.boot_now()
        for found in seen.matches:
            self._matches.add(found, now, counts=self._scanner.is_new(found))
        if self._matches.flooding and self._scanner.match is not None:
            await self._stop_matching()
        if self._scanner.skipped:
            await self._say_too_fast()

    async def _say_too_fast(self) -> None:
        if not self._said_too_fast:
            self._said_too_fast = True
            await self._ledger.note(EventKind.DETAIL, Facts(detail=_TOO_FAST))

    async def _tell(self) -> None:
        taken = self._matches.take(clock.boot_now())
        if taken is None:
            return
        found, more = taken
        task = self._ledger.task
        text = match_text(task.title, task.id, shown_line(found.text), more)
        said = shown_line(found.text) + and_more(more)
        await self._note(found, text, said, {"line": found.text, "more": more})

    async def _stop_matching(self) -> None:
        taken = self._matches.take(clock.boot_now())
        assert taken is not None
        self._scanner.match = None
        task = self._ledger.task
        said = f"more than {FLOOD:,} lines matched in a minute: no more are told"
        text = flood_text(task.title, task.id, said, shown_line(taken[0].text))
        data = {"line": taken[0].text, "more": taken[1], "stopped": True}
        await self._note(taken[0], text, said, data, detail=said)

    async def _note(
        self, found: Found, text: str, said: str, data: dict[str, Any], *, detail: str | None = None
    ) -> None:
        task = self._ledger.task
        key = f"{task.id}:match:{task.attempt}:{found.stream}.{found.line}"
        signal = NewSignal(SignalKind.MATCH, key, text, {**data, "stream": found.stream})
        told = {
            "text": said,
            ATTEMPT: task.attempt,
            "places": self._scanner.places,
            "stopped": data.get("stopped"),
        }
        await self._ledger.note(EventKind.MATCH, Facts(detail=detail, data=told, signal=signal))

    async def conclude(self, ending: Ending) -> Ending:
        """The last lines, and all that was counted and not told."""
        if self._turn is not None:
            with contextlib.suppress(Exception):  # told by whoever ran it
                await self._turn
        await self._begin()
        deadline = time.monotonic() + _LAST_SCANS_S
        while self._wanted:
            seen = await asyncio.to_thread(self._scanner.scan, _SCAN_S, ended=True)
            await self._deal_with(seen)
            if not seen.more:
                break
            if time.monotonic() > deadline:
                await self._say_too_fast()
                break
        await self._tell()
        return ending


def shown_line(text: str, limit: int = 200) -> str:
    """A line as a signal shows it."""
    line = strip_controls(text)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _length(path: str) -> int:
    try:
        return measure(path, patience_s=0)[0]
    except OSError:
        return 0
