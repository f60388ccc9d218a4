"""Whether a job has written a file. One that was there before its start does not count.

The kernel tells when something appears in a folder; a folder that is not there yet, or that lies
on a file system that tells nothing, is looked at by the clock.
"""

import asyncio
import contextlib
import os

from backburner.model.clock import Instant
from backburner.work.linux import Inotify, Watch
from backburner.work.probe.probe import NOT_YET, Answer

_COARSE_US = 20_000
"""File times come from a clock that ticks every 4 to 10 ms, and so may lie before the start."""
_TELLS_NOTHING_S = 5.0
"""Files that another machine writes make no event here: looked at this often all the same."""
_FLOOR_S = 0.02
"""Between two looks, however much is written in the folder."""


class FileProbe:
    """Looks for one file."""

    lasts = True

    def __init__(self, path: str, shown: str, started_at: Instant) -> None:
        self._path = path
        self._shown = shown
        self._oldest_ns = (started_at - _COARSE_US) * 1000
        self._was_missing = False
        self._inotify: Inotify | None = None
        self._watched = False

    async def look(self) -> Answer:
        """Whether it is there."""
        self._watch()  # before the look: what appears after it ends the pause
        try:
            changed = os.stat(self._path).st_ctime_ns
        except (OSError, ValueError):
            self._was_missing = True
            return NOT_YET
        # One that we saw appear needs no time, which may be set, coarse or another machine's.
        if changed < self._oldest_ns and not self._was_missing:
            text = f"{self._shown} is there from before the start: it counts when written anew"
            return Answer(ready=False, text=text)
        return Answer(ready=True, text=f"{self._shown} is there")

    def _watch(self) -> None:
        if self._inotify is None:
            try:
                self._inotify = Inotify()
            except OSError:  # no more of them for this user
                return
        events = self._inotify.drain()
        if any(mask & (Watch.DELETE_SELF | Watch.MOVE_SELF | Watch.IGNORED) for _, mask in events):
            self._watched = False
        if not self._watched:
            folder = os.path.dirname(self._path) or "/"
            mask = Watch.CREATE | Watch.MOVED_TO | Watch.ATTRIB | Watch.MODIFY
            with contextlib.suppress(OSError, ValueError):
                self._inotify.add(folder, mask | Watch.DELETE_SELF | Watch.MOVE_SELF)
                self._watched = True

    async def pause(self, seconds: float) -> None:
        """Until something happens in its folder."""
        if self._inotify is None or not self._watched:
            await asyncio.sleep(seconds)
            return
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        loop.add_reader(self._inotify.fileno(), changed.set)
        try:
            async with asyncio.timeout(_TELLS_NOTHING_S):
                await changed.wait()
            await asyncio.sleep(_FLOOR_S)
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(self._inotify.fileno())

    def close(self) -> None:
        """End the watch."""
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
            self._watched = False
