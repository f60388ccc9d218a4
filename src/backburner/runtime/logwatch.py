"""Keeping the logs of running jobs bounded while the jobs write.

The kernel tells when a log grows (inotify); it is looked at most every 10 ms, because each look
costs system calls, and every 3 ms while it floods, because a job can write gigabytes in a second.
The first look is after 10 ms too: most jobs of a flood of short ones have ended by then. A log of
which the kernel cannot tell (no inotify, or no more watches for this user) is looked at ten times a
second.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from backburner.model import clock
from backburner.model.home import AttemptFolder
from backburner.runtime.attendant import Attendant
from backburner.runtime.output import add_mark
from backburner.store.protocol import Output
from backburner.work.linux import Inotify, Watch
from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds
from backburner.work.log.cursor import Cursor

_FLOOR_S = 0.010
_IN_A_FLOOD_S = 0.003
_FLOOD = 8 * 1024 * 1024
"""Bytes between two looks: a machine that is busy besides lets the next one come late, too."""
_WITHOUT_INOTIFY_S = 0.100
_MARK_S = 10.0


class WatchedLog:
    """The logs of one attempt."""

    __slots__ = (
        "_attempt",
        "_bounders",
        "_folder",
        "_marked",
        "_since",
        "attendants",
        "output",
        "watch",
    )

    def __init__(
        self, folder: AttemptFolder, attempt: int, bounds: LogBounds, *, separate_stderr: bool
    ) -> None:
        paths = (folder.log, folder.stderr) if separate_stderr else (folder.log,)
        self._folder = folder
        self._attempt = attempt
        self._bounders = [LogBounder(path, bounds) for path in paths]
        self._since = self._marked = clock.boot_now()
        self.watch: int | None = None
        self.attendants: Sequence[Attendant] = ()
        """Who else looks when something has changed."""
        self.output = Output()
        """How much there is, as of the last look."""

    def look(self, *, final: bool = False) -> None:
        """Free the middle where there is too much, and note how far the output is."""
        try:
            found = [bounder.bound(final=final) for bounder in self._bounders]
            total = sum(each.total for each in found)
            self.output = Output(total, sum(each.dropped for each in found))
            self._mark([each.total for each in found])
        except OSError:
            pass  # a full disk, a vanished folder, a job's own files: the next look tries again
        for attendant in self.attendants:
            attendant.look()

    @property
    def folder(self) -> str:
        """What is watched: the job writes more than its log there."""
        return self._folder.path

    def _mark(self, totals: Sequence[int]) -> None:
        now = clock.boot_now()
        # Ever more rarely, so that a job of months has a few thousand marks.
        interval = max(_MARK_S * clock.SECOND, (now - self._since) / 360)
        if now - self._marked >= interval:
            self._marked = now
            add_mark(self._folder, clock.now(), str(Cursor(self._attempt, *totals)))


class LogWatch:
    """Looks after the logs of all jobs of a worker."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._logs: set[WatchedLog] = set()
        self._by_watch: dict[int, WatchedLog] = {}
        self._by_clock: set[WatchedLog] = set()
        self._new: set[WatchedLog] = set()
        self._loss: tuple[int, Callable[[], None]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._flooded = False
        """Whether much was new at the last look."""
        self._first: asyncio.TimerHandle | None = None
        try:
            self._inotify: Inotify | None = Inotify()
            self._loop.add_reader(self._inotify.fileno(), self._something_grew)
        except OSError:
            self._inotify = None

    def add(self, log: WatchedLog) -> None:
        """Look after this log from now on."""
        self._logs.add(log)
        self._new.add(log)
        if self._first is None:
            self._first = self._loop.call_later(_FLOOR_S, self._look_at_new)

    def _look_at_new(self) -> None:
        self._first = None
        for log in self._new:
            if not self._watch(log):
                self._by_clock.add(log)
                if self._clock is None:
                    self._clock = self._loop.call_later(_WITHOUT_INOTIFY_S, self._look_by_clock)
            log.look()  # what it wrote before we came
        self._new.clear()

    def on_loss(self, path: str, tell: Callable[[], None]) -> None:
        """Call ``tell`` soon after this file may have been deleted or moved, if that is known."""
        if self._inotify is not None:
            with contextlib.suppress(OSError):
                self._loss = (self._inotify.add(path, Watch.ATTRIB | Watch.MOVE_SELF), tell)

    def _watch(self, log: WatchedLog) -> bool:
        """Whether the kernel will tell when it grows."""
        if self._inotify is None:
            return False
        try:
            log.watch = self._inotify.add(log.folder, Watch.MODIFY | Watch.CREATE)
        except OSError:
            return False
        self._by_watch[log.watch] = log
        return True

    def remove(self, log: WatchedLog) -> None:
        """The job has ended: trim its log to what is kept, and let go."""
        if log not in self._logs:
            return
        self._logs.discard(log)
        self._by_clock.discard(log)
        self._new.discard(log)
        if log.watch is not None:
            self._by_watch.pop(log.watch, None)
            if self._inotify is not None:
                self._inotify.remove(log.watch)
            log.watch = None
        log.look(final=True)

    def close(self) -> None:
        """Let go of everything."""
        for timer in (self._timer, self._clock, self._first):
            if timer is not None:
                timer.cancel()
        if self._inotify is not None:
            self._loop.remove_reader(self._inotify.fileno())
            self._inotify.close()

    def _something_grew(self) -> None:
        assert self._inotify is not None
        self._loop.remove_reader(self._inotify.fileno())  # deaf for a moment: that is the floor
        pause = _IN_A_FLOOD_S if self._flooded else _FLOOR_S
        self._timer = self._loop.call_later(pause, self._look_at_grown)

    def _look_at_grown(self) -> None:
        assert self._inotify is not None
        self._timer = None
        watches = {watch for watch, _ in self._inotify.drain()}
        if self._loss is not None and self._loss[0] in watches:
            self._loss[1]()
        if -1 in watches:  # the queue overflowed: any of them may have grown
            grown = self._logs
        else:
            grown = {self._by_watch[watch] for watch in watches if watch in self._by_watch}
        before = sum(log.output.total for log in grown)
        for log in grown:
            log.look()
        self._flooded = sum(log.output.total for log in grown) - before > _FLOOD
        self._loop.add_reader(self._inotify.fileno(), self._something_grew)

    def _look_by_clock(self) -> None:
        for log in self._by_clock:
            log.look()
        self._clock = (
            self._loop.call_later(_WITHOUT_INOTIFY_S, self._look_by_clock)
            if self._by_clock
            else None
        )
