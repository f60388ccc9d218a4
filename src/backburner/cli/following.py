"""Output as it is written: the kernel tells when a log grows, so nothing is asked in between.

Output makes no event in the record, hence inotify; the record tells of the start and the end. Of a
task on another machine the record tells all: its output is copied there.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator
from functools import partial
from types import TracebackType
from typing import Self

from backburner.app import Backburner, Task
from backburner.cli import say, terminal, textwidth
from backburner.model.values import value
from backburner.runtime.outages import endured
from backburner.work.linux import Inotify, Watch
from backburner.work.log.fold import fold
from backburner.work.log.read import Chunk, Streams

_FLOOR_S = 0.05
"""Between two reads, however fast a job writes."""
_WITHOUT_INOTIFY_S = 0.2


@value
class Reading:
    """What is read, and how."""

    since: str | None = None
    grep: str | None = None
    last_lines: int | None = None
    raw: bool = False
    streams: Streams = "both"

    async def read(self, task: Task, *, since: str | None, first: bool) -> Chunk:
        """One read, uncut: a person scrolls."""
        return await task.output(
            since=since,
            max_chars=None,
            grep=self.grep,
            last_lines=self.last_lines if first else None,
            raw=self.raw,
            streams=self.streams,
        )


async def follow(backburner: Backburner, task: Task, reading: Reading) -> AsyncGenerator[Chunk]:
    """What the task has written and writes, up to its end. The handle is up to date with it."""
    since = reading.since
    first = True
    with _Bell(backburner) as bell:
        while True:
            await bell.wait()
            bell.listen_to(await endured(task.refresh))
            chunk = await endured(partial(reading.read, task, since=since, first=first))
            since, first = chunk.cursor, False
            yield chunk
            if task.state.terminal:
                return


class _Bell:
    """Rings when the log of a task has grown, or its record has changed; the first time at once."""

    def __init__(self, backburner: Backburner) -> None:
        self._home = backburner.home
        self._store = backburner.store
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self._rung.set()
        self._watched: set[str] = set()
        self._next = 0.0
        try:
            self._inotify: Inotify | None = None if self._home.shared else Inotify()
        except OSError:
            self._inotify = None

    def __enter__(self) -> Self:
        self._unsubscribe = self._store.on_change(self._rung.set)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unsubscribe()
        if self._inotify is not None:
            self._loop.remove_reader(self._inotify.fileno())
            self._inotify.close()

    async def wait(self) -> None:
        """Until there may be something new; not more often than the floor."""
        told = self._watched or self._home.shared
        timeout = None if told else _WITHOUT_INOTIFY_S
        try:
            async with asyncio.timeout(timeout):
                await self._rung.wait()
        except TimeoutError:
            pass
        await asyncio.sleep(max(0.0, self._next - self._loop.time()))
        self._next = self._loop.time() + _FLOOR_S
        self._rung.clear()

    def listen_to(self, task: Task) -> None:
        """Before each read, so that what is written after it rings again."""
        if self._inotify is None:
            return
        self._inotify.drain()
        record = task.record
        folder = self._home.attempt(record.id, record.attempt)
        for path in {folder.log, folder.stderr} - self._watched:
            try:
                self._inotify.add(path, Watch.MODIFY)
            except OSError:
                continue  # not there yet, or no watches left for this user
            self._watched.add(path)
        self._loop.add_reader(self._inotify.fileno(), self._grown)

    def _grown(self) -> None:
        assert self._inotify is not None
        self._loop.remove_reader(self._inotify.fileno())  # deaf until the next read
        self._rung.set()


class Printer:
    """Prints what is read piece by piece, as one read of the whole would look.

    A line that is not whole yet is kept back, because what follows may draw over it; in a terminal
    it is shown meanwhile.
    """

    _LONG_LINE = 64 * 1024

    def __init__(self, *, exact: bool) -> None:
        self._exact = exact
        self._terminal = terminal.is_terminal(sys.stdout)
        self._pending = ""
        self._sketched = False

    def print(self, chunk: Chunk) -> None:
        """Print a piece that was read ``raw``."""
        if chunk.stderr_text:
            say.error_output(chunk.stderr_text if self._exact else fold(chunk.stderr_text))
        if not chunk.text:
            return
        if self._exact:
            say.at_once(chunk.text)
            return
        self._pending += chunk.text
        whole = self._pending.rfind("\n") + 1
        if len(self._pending) - whole > self._LONG_LINE:
            whole = len(self._pending)
        lines, self._pending = self._pending[:whole], self._pending[whole:]
        self._show(fold(lines))

    def close(self) -> None:
        """There will be no more."""
        rest, self._pending = self._pending, ""
        self._show(fold(rest))
        if rest and self._terminal:
            say.at_once("\n")

    def _show(self, settled: str) -> None:
        erase = "\r\x1b[K" if self._sketched else ""
        sketch = ""
        if self._pending and self._terminal:
            line = fold(self._pending).rpartition("\n")[2]
            # One column less than there is: in the last one a terminal would wrap.
            sketch = textwidth.cut(line, (terminal.width(sys.stdout) or 80) - 1)
        self._sketched = bool(sketch)
        if erase or settled or sketch:
            say.at_once(f"{erase}{settled}{sketch}")
