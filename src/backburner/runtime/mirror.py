"""The output of what runs here, copied into the record for readers on other machines.

Once a second, and before an end is written: what was written since. A copy that fails, or that the
database forgets in a crash, is found out by the next one, which asks the record what it has; it
asks in any case after the database was away, and before an end. The last copy is on disk before the
end is: a database that crashes between the two forgets neither or the end alone.
"""

import asyncio
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from backburner.model.home import AttemptFolder, Home
from backburner.model.task import Task
from backburner.runtime.output import measure_output
from backburner.store.postgres.mirror import Written
from backburner.store.postgres.node import NodeStore
from backburner.store.postgres.pieces import Growth, Held, growth
from backburner.work.log.bounds import LogBounds
from backburner.work.log.stream import read_stream
from backburner.work.shell import log_bounds

_EVERY_S = 1.0
_AT_ONCE = 64
_BYTES_AT_ONCE = 1024 * 1024
"""In one commit: nobody else on any machine writes meanwhile."""
_TRIES = 3

_Sign = tuple[int, int]
"""How long a file is, and when it was changed."""
_NO_SIGN = (0, 0)
_Attempt = tuple[str, int]


@dataclass(slots=True)
class _Log:
    """What is known of the output of one attempt."""

    held: dict[str, Held] = field(default_factory=dict[str, Held])
    """By stream; to begin with nothing, which is so unless it was adopted."""
    signs: dict[str, _Sign] = field(default_factory=dict[str, _Sign])
    """Of the files when they were copied."""
    unread: bool = False
    """It was told that something of it cannot be read."""
    doubted: bool = False
    """The record may hold something else, as after a crash: it is asked first."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Copier:
    """Keeps the record up with the logs of one node, and up to the end of each."""

    def __init__(
        self,
        store: NodeStore,
        home: Home,
        at_work: Callable[[], Collection[Task]],
        report: Callable[[str], None],
    ) -> None:
        self._store = store
        self._home = home
        self._at_work = at_work
        self._report = report
        self._logs: dict[_Attempt, _Log] = {}
        self._reached = store.breaks
        self._all_copied_at = time.monotonic()
        store.before_end.append(self._copy_last)

    async def run(self) -> None:
        """Again and again, until cancelled: what has grown since."""
        took = 0.0
        while True:
            await asyncio.sleep(max(_EVERY_S, took))  # a flood leaves the database half of the time
            began = time.monotonic()
            try:
                self._doubt()
                await self._copy_all(self._at_work())
                self._all_copied_at = time.monotonic()
            except Exception as error:  # noqa: BLE001 - the next copy has it all
                self._report(f"output was not copied: {type(error).__name__}: {error}")
            took = time.monotonic() - began

    def _doubt(self) -> None:
        """Where the database was lost for a moment: what it was told last it may not have."""
        if self._reached != self._store.breaks:
            self._reached = self._store.breaks
            for log in self._logs.values():
                log.doubted = True

    @property
    def behind_s(self) -> float:
        """Since everything was copied."""
        return time.monotonic() - self._all_copied_at

    async def _copy_all(self, tasks: Collection[Task]) -> None:
        here = {(task.id, task.attempt) for task in tasks}
        for key in self._logs.keys() - here:
            if not self._logs[key].turn.locked():
                del self._logs[key]
        failed: list[BaseException] = []
        for group in _groups(await asyncio.to_thread(self._grown, tasks)):
            copies = await asyncio.gather(*map(self.copy, group), return_exceptions=True)
            failed += [error for error in copies if error is not None]
        if failed:
            raise failed[0]

    def _grown(self, tasks: Collection[Task]) -> list[tuple[Task, int]]:
        """Those whose files have changed, and about how much there is to copy."""
        found: list[tuple[Task, int]] = []
        for task in tasks:
            log = self._logs.get((task.id, task.attempt)) or _Log()
            folder = self._home.attempt(task.id, task.attempt)
            if (signs := _signs(folder)) != log.signs or log.doubted:
                had = sum(size for size, _ in log.signs.values())
                new = max(0, sum(size for size, _ in signs.values()) - had)
                found.append((task, min(new, _bounds(task).most)))
        return found

    async def copy(self, task: Task, *, last: bool = False) -> None:
        """What there is now. The ``last`` time it is on disk then."""
        log = self._logs.setdefault((task.id, task.attempt), _Log())
        folder = self._home.attempt(task.id, task.attempt)
        async with log.turn:
            for _ in range(_TRIES):
                if log.doubted:
                    log.held = await self._store.held_output(task.id, task.attempt)
                    log.signs, log.doubted = {}, False
                look = await asyncio.to_thread(_look, task, folder, log, last=last)
                signs, written, error = look
                if error is not None and not log.unread:
                    self._report(f"{task.id}: its output cannot be copied: {error}")
                log.unread = error is not None
                if written is None or await self._is_put(written, log, last=last):
                    log.signs = signs
                    return
                log.doubted = True

    async def _copy_last(self, task: Task) -> None:
        """The same, before its end is written: after that nobody would find out what is missing."""
        if log := self._logs.get((task.id, task.attempt)):
            log.doubted = True
        await self.copy(task, last=True)

    async def _is_put(self, written: Written, log: _Log, *, last: bool) -> bool:
        """False where the record holds something else than was thought."""
        added = await self._store.put_output(written, last=last)
        log.held |= {each.stream: each.after for each in written.streams if each.stream in added}
        return len(added) == len(written.streams)


def _groups(grown: Sequence[tuple[Task, int]]) -> Iterator[list[Task]]:
    """Those that are copied at once."""
    group: list[Task] = []
    room = _BYTES_AT_ONCE
    for task, size in grown:
        if group and (size > room or len(group) == _AT_ONCE):
            yield group
            group, room = [], _BYTES_AT_ONCE
        group.append(task)
        room -= size
    if group:
        yield group


def _look(
    task: Task, folder: AttemptFolder, log: _Log, *, last: bool
) -> tuple[dict[str, _Sign], Written | None, OSError | None]:
    """What the record lacks. The signs are of before the look.

    A job can put anything in the place of its log: what cannot be read keeps nothing else up, and
    has no sign, so that it is looked at again.
    """
    signs = _signs(folder)
    failed: OSError | None = None
    bounds = _bounds(task)
    grown: list[Growth] = []
    for name, path in streams_of(folder).items():
        if name in signs and signs[name] != log.signs.get(name):
            try:
                found = _growth(name, path, log.held.get(name, Held()), bounds)
            except OSError as error:
                failed = error
                del signs[name]
                continue
            if found is not None:
                grown.append(found)
    if last:  # what the record was seen to have a crash may have taken since
        named = {each.stream for each in grown}
        grown += [Growth.none(name, held) for name, held in log.held.items() if name not in named]
    if not grown:
        return signs, None, failed
    return signs, Written(task.id, task.attempt, grown, measure_output(folder)), failed


def _bounds(task: Task) -> LogBounds:
    """Of each stream. A machine may keep more; the record, which all share, has about 1.5 MB of a

    task, whether that has one stream or two, and one attempt or many.
    """
    kept, usual = log_bounds(task.spec), LogBounds()
    share = 2 if task.spec.get("separate_stderr") else 1
    return LogBounds(min(kept.head, usual.head // share), min(kept.tail, usual.tail // share))


def _growth(name: str, path: str, held: Held, bounds: LogBounds) -> Growth | None:
    read = read_stream(path, held.looks_from, bounds=bounds)
    found = [(segment.offset, segment.data) for segment in read.segments]
    goes_on = held.goes_on(found, read.total)
    if goes_on and read.total == held.total:
        return None
    if not goes_on:
        held = Held(begun=True)
        read = read_stream(path, bounds=bounds)
        found = [(segment.offset, segment.data) for segment in read.segments]
    new = growth(name, held, found, read.total, head=bounds.head, tail=bounds.tail)
    return new if goes_on else replace(new, anew=True)


def _signs(folder: AttemptFolder) -> dict[str, _Sign]:
    found: dict[str, _Sign] = {}
    for name, path in streams_of(folder).items():
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        except OSError:
            found[name] = _NO_SIGN  # who reads it learns what is wrong
            continue
        found[name] = status.st_size, status.st_mtime_ns
    return found


def streams_of(folder: AttemptFolder) -> dict[str, str]:
    """The files that are copied, by what the record calls them."""
    return {"output": folder.log, "stderr": folder.stderr, "marks": folder.marks}
