"""`ls --watch`: the list again whenever the record changes, without asking for it all the time."""

import asyncio
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

from backburner.cli import bars, exits, say, terminal
from backburner.cli.listing import Listing, no_tasks, select, task_rows, task_table
from backburner.cli.place import Place, act
from backburner.cli.textwidth import clean, cut
from backburner.model import clock
from backburner.model.errors import StoreAway, UsageError
from backburner.model.task import Task
from backburner.runtime.glance import Glance
from backburner.runtime.outages import endured
from backburner.runtime.output import describe

if TYPE_CHECKING:
    from backburner.app import Backburner

_TICK_S = 1.0
"""Ages are drawn anew this often; the record is not asked for that."""
_FLOOR_S = 0.1
"""Between two looks at the record, however much happens in it."""
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)

_OTHER_SCREEN = "\x1b[?1049h\x1b[?25l"
_FIRST_SCREEN = "\x1b[?25h\x1b[?1049l"


def watch(listing: Listing, at: Place) -> int:
    """Show the list until the person leaves with Ctrl-C."""
    if listing.as_json:
        return act(at, lambda backburner, _: _stream(listing, at, backburner))
    if not terminal.is_terminal(sys.stdout):
        raise UsageError("--watch needs a terminal", remedy="with --json it works without one")
    return act(at, lambda backburner, _: _Screen(listing, at, backburner).show(), outage=_quiet)


def _quiet(_: str | None) -> None:
    """The screen says so itself."""


class _Screen:
    """The list on a screen of its own, which is gone afterwards."""

    def __init__(self, listing: Listing, at: Place, backburner: "Backburner") -> None:
        self._listing = listing
        self._at = at
        self._store = backburner.store
        self._changed = asyncio.Event()
        self._resized = asyncio.Event()
        self._ended = asyncio.Event()
        self._tasks: list[Task] = []
        self._away: str | None = None
        """Why the record cannot be looked at."""

    async def show(self) -> int:
        """Draw until interrupted."""
        unsubscribe = self._store.on_change(self._changed.set)
        end_outages = self._store.on_outage(self._outage)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._resized.set)
        for ending in _ENDINGS:  # else the person would be left on the other screen
            loop.add_signal_handler(ending, self._ended.set)
        say.at_once(_OTHER_SCREEN)
        try:
            while not self._ended.is_set():
                try:
                    await self._look_and_draw()
                except StoreAway as error:
                    self._outage(error.message)
                    self._draw()
                    await asyncio.sleep(_TICK_S)  # not more often: each try blocks the screen
            return exits.TERMINATED
        finally:
            say.at_once(_FIRST_SCREEN)
            for handled in (signal.SIGWINCH, *_ENDINGS):
                loop.remove_signal_handler(handled)
            unsubscribe()
            end_outages()

    async def _look_and_draw(self) -> None:
        """For as long as one connection to the record lasts."""
        with Glance(self._at.home) as glance:
            self._changed.set()
            while not self._ended.is_set():
                if self._changed.is_set():
                    self._changed.clear()
                    pages, _ = select(glance, self._listing, self._at)
                    self._tasks = [task for page in pages for task in page]
                    self._away = None
                self._resized.clear()
                self._draw()
                await self._next_reason()

    def _outage(self, reason: str | None) -> None:
        self._away = reason
        self._resized.set()

    async def _next_reason(self) -> None:
        """Wait for a change, a new size, the end, or the next second of something that runs."""
        waiting = {
            asyncio.ensure_future(event.wait())
            for event in (self._changed, self._resized, self._ended)
        }
        ticking = any(not task.state.terminal for task in self._tasks)
        try:
            await asyncio.sleep(_FLOOR_S)
            await asyncio.wait(
                waiting,
                timeout=_TICK_S - _FLOOR_S if ticking else 60 * _TICK_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for each in waiting:
                each.cancel()

    def _draw(self) -> None:
        tasks = self._tasks
        size = terminal.size(sys.stdout)
        assert size is not None
        progress = any(map(bars.shows_progress, tasks))
        table = task_table(self._listing, width=size.columns, progress=progress)
        rows = task_rows(self._listing, tasks, clock.now(), progress=progress)
        lines = list(table.lines(rows))
        if not tasks:
            lines = [no_tasks(self._listing, self._at)]
        if self._away is not None:
            lines = [cut(clean(self._away), size.columns), *lines]
        room = size.lines - 1
        if len(lines) > room:
            lines = [*lines[: room - 1], f"… and {len(lines) - room + 1} more"]
        # Line by line over the old ones: clearing the screen first would make it flicker.
        drawn = "".join(f"{line}\x1b[K\r\n" for line in lines)
        say.at_once(f"\x1b[H{drawn}\x1b[J")


async def _stream(listing: Listing, at: Place, backburner: "Backburner") -> int:
    """JSON lines: the tasks that are there, then each one that something happens to."""
    store = backburner.store
    scope = listing.scope(at)
    changed = asyncio.Event()
    unsubscribe = store.on_change(changed.set)
    try:
        seen = await store.last_event()
        with Glance(at.home) as glance:
            pages, _ = select(glance, listing, at)
            for page in pages:
                for task in reversed(page):
                    say.json_line(describe(at.home, task))
        while True:
            changed.clear()
            while events := await endured(partial(store.events_since, seen)):
                seen = events[-1].seq
                for task_id in dict.fromkeys(event.task for event in events):
                    task = await endured(partial(store.get, task_id, scope))
                    if task is not None and (not listing.states or task.state in listing.states):
                        say.json_line(describe(at.home, task))
            await changed.wait()
    finally:
        unsubscribe()
