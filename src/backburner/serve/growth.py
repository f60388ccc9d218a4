"""Telling readers that the output of a task has grown. Output makes no event in the record.

The kernel tells when a log grows (inotify, one instance for the server, because a user has few of
them); a log of which it cannot tell is looked at five times a second. Of a task on another machine
the record tells: its output is copied there. A reader is told how far the
output is, and never twice the same: one that is slow is told the latest alone.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable

from fastapi.sse import format_sse_event

from backburner.model.errors import BackburnerError
from backburner.model.home import Home
from backburner.model.task import Task
from backburner.runtime.output import attempt_with_output, end_cursor, measure_output
from backburner.serve.hub import Reader
from backburner.store.protocol import Store
from backburner.work.linux import Inotify, Watch

_FLOOR_S = 0.1
"""Between two looks, however fast a job writes."""
_WITHOUT_INOTIFY_S = 0.2


class _Log:
    """The output of one task, and who reads along."""

    def __init__(self) -> None:
        self.readers: set[Reader] = set()
        self.watches: dict[str, int] = {}
        self.blind = True
        """The kernel does not tell of it."""
        self.cursor = ""
        self.told = b""


class Growth:
    """Looks at the logs that somebody reads."""

    def __init__(self, home: Home, store: Store, fetch: Callable[[Task], Awaitable[None]]) -> None:
        """``fetch`` has the output of a task here, where it runs on another machine."""
        self._home = home
        self._store = store
        self._fetch = fetch
        self._logs: dict[str, _Log] = {}
        self._due: set[str] = set()
        self._bell = asyncio.Event()
        try:
            self._inotify: Inotify | None = None if home.shared else Inotify()
        except OSError:
            self._inotify = None

    def join(self, reader: Reader) -> None:
        """From now on it is told, and at once how far the output is."""
        assert reader.task is not None
        log = self._logs.setdefault(reader.task, _Log())
        log.readers.add(reader)
        if log.told:
            reader.put_aside(log.told)
        self._due.add(reader.task)
        self._bell.set()

    def leave(self, reader: Reader) -> None:
        """It is told no more. One that never joined may leave."""
        log = self._logs.get(reader.task or "")
        if log is None:
            return
        log.readers.discard(reader)
        if log.readers:
            return
        for number in log.watches.values():
            if self._inotify is not None:
                self._inotify.remove(number)
        self._logs.pop(reader.task or "")

    async def run(self) -> None:
        """Until it is cancelled."""
        unsubscribe = self._store.on_change(self._all)
        loop = asyncio.get_running_loop()
        if self._inotify is not None:
            loop.add_reader(self._inotify.fileno(), self._heard)
        try:
            while True:
                await self._rung()
                self._bell.clear()
                due, self._due = self._due, set()
                for task_id in due:
                    # A record that cannot be read now is looked at again at its next change.
                    with contextlib.suppress(BackburnerError, OSError):
                        await self._look(task_id)
                await asyncio.sleep(_FLOOR_S)
        finally:
            unsubscribe()
            if self._inotify is not None:
                loop.remove_reader(self._inotify.fileno())
                self._inotify.close()

    async def _rung(self) -> None:
        blind = {name for name, log in self._logs.items() if log.blind}
        try:
            async with asyncio.timeout(_WITHOUT_INOTIFY_S if blind else None):
                await self._bell.wait()
        except TimeoutError:
            self._due |= blind

    def _all(self) -> None:
        """Something in the record has changed: a task may have started, or started again."""
        if self._logs:
            self._due |= self._logs.keys()
            self._bell.set()

    def _heard(self) -> None:
        assert self._inotify is not None
        numbers = {number for number, _ in self._inotify.drain()}
        if -1 in numbers:  # events were lost
            self._all()
            return
        self._due |= {
            name for name, log in self._logs.items() if not numbers.isdisjoint(log.watches.values())
        }
        self._bell.set()

    async def _look(self, task_id: str) -> None:
        task = await self._store.get(task_id)
        log = self._logs.get(task_id)
        if task is None or log is None:
            return
        await self._fetch(task)
        attempt = attempt_with_output(self._home, task)
        folder = self._home.attempt(task_id, attempt)
        apart = bool(task.spec.get("separate_stderr"))
        self._watch(log, {folder.log, folder.stderr} if apart else {folder.log}, task)
        cursor = end_cursor(folder, attempt)
        if cursor == log.cursor:
            return
        log.cursor = cursor
        data = {"cursor": cursor, "total": measure_output(folder).total}
        log.told = format_sse_event(data_str=json.dumps(data), event="output")
        for reader in log.readers:
            reader.put_aside(log.told)

    def _watch(self, log: _Log, paths: set[str], task: Task) -> None:
        """Before the log is measured, so that what is written after that rings again."""
        if self._inotify is None:
            log.blind = not self._home.shared
            return
        for path in log.watches.keys() - paths:
            self._inotify.remove(log.watches.pop(path))
        for path in paths - log.watches.keys():
            with contextlib.suppress(OSError):  # not there yet, or no watches left for this user
                log.watches[path] = self._inotify.add(path, Watch.MODIFY)
        # Of one that has not started the record tells when it has.
        log.blind = task.started_at is not None and log.watches.keys() != paths
