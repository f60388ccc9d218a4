"""Output of tasks on other machines, as a reader has it: in files like those that the node has.

A copy is a log as if it had been written here, and it is bounded as one. What is new is added to
it; where the job has emptied its log, or more was dropped than was read, it is laid out anew.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Generator
from typing import Any

from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder, Home
from backburner.model.task import Task
from backburner.runtime.mirror import streams_of
from backburner.store.postgres.mirror import Mirror, Mirrored, Version
from backburner.store.postgres.pieces import BLOCK
from backburner.store.protocol import Scope
from backburner.work.log import moved
from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds
from backburner.work.log.measure import measure
from backburner.work.plain_file import open_plain
from backburner.work.shell import log_bounds

_SWEEP_EVERY_S = 3600.0
_UNUSED_S = 86400.0
_TRIES = 3
_COPIED = "copied"
"""In a folder of copies: the number of the task that they are of, and of each stream how often the
job had emptied it. Who lays out copies holds the lock of the folder."""


class Copies:
    """What a reader has of the output of tasks on other machines, in a folder of its own."""

    def __init__(self, store: Mirror, home: Home) -> None:
        self._store = store
        self._home = home
        self._swept = -_SWEEP_EVERY_S

    async def fetch(self, task: Task) -> None:
        """Have what the record has of the output of a task's last attempt that has written."""
        await self._sweep()
        for _ in range(_TRIES):
            had = await asyncio.to_thread(self._had, task)
            lacks = await self._store.outputs(task.id, Scope(task.owner), had)
            fits = [await asyncio.to_thread(self._take, task, each) for each in lacks]
            if all(fits):
                break
        folder = self._home.attempt(task.id, task.attempt)
        if task.state.terminal and not _is_original(folder):
            await asyncio.to_thread(_complete, folder, task)

    def _had(self, task: Task) -> list[Version]:
        """Of the last attempt that has written, as far as it is known here, and of those after."""
        found: list[Version] = []
        for attempt in range(task.attempt, 0, -1):
            folder = self._home.attempt(task.id, attempt)
            mark = _mark_of(folder)
            if mark is None or mark["task"] != task.seq:
                continue
            with contextlib.suppress(OSError):
                os.utime(folder.path)  # somebody looks at them
            had = [
                Version(attempt, stream, mark["streams"][stream], measure(path)[0])
                for stream, path in streams_of(folder).items()
                if stream in mark["streams"]
            ]
            found += had
            if any(each.stream != "marks" for each in had):
                break
        return found

    def _take(self, task: Task, output: Mirrored) -> bool:
        """Whether it fits what is here; else somebody has laid out or removed it meanwhile."""
        folder = self._home.attempt(task.id, output.version.attempt)
        if _is_original(folder):
            return True
        with _alone_in(folder):
            return _take(folder, task, output)

    async def _sweep(self) -> None:
        """Copies that nobody has looked at for a day are fetched again where they are wanted."""
        if time.monotonic() - self._swept < _SWEEP_EVERY_S:
            return
        self._swept = time.monotonic()
        await asyncio.to_thread(_remove_unused, self._home)


def _remove_unused(home: Home) -> None:
    with contextlib.suppress(FileNotFoundError), os.scandir(home.tasks) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                old = time.time() - entry.stat().st_mtime > _UNUSED_S
                if old and os.path.exists(f"{entry.path}/{_COPIED}"):
                    shutil.rmtree(entry.path, ignore_errors=True)


# One folder


@contextlib.contextmanager
def _alone_in(folder: AttemptFolder) -> Generator[None]:
    os.makedirs(folder.path, mode=0o700, exist_ok=True)
    fd = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _is_original(folder: AttemptFolder) -> bool:
    """Whether the attempt was carried out here: its log is no copy."""
    return os.path.exists(folder.log) and not os.path.exists(f"{folder.path}/{_COPIED}")


def _mark_of(folder: AttemptFolder) -> dict[str, Any] | None:
    try:
        with open(f"{folder.path}/{_COPIED}", encoding="ascii", opener=open_plain) as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _mark(folder: AttemptFolder, mark: dict[str, Any]) -> None:
    _put(f"{folder.path}/{_COPIED}", mark)


def _own_mark(folder: AttemptFolder, task: Task) -> dict[str, Any]:
    """Of copies of this task, and of no other that had its id before."""
    mark = _mark_of(folder)
    if mark is None or mark["task"] != task.seq:
        for name in os.listdir(folder.path) if mark is not None else ():
            path = f"{folder.path}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        mark = {"task": task.seq, "streams": dict[str, int]()}
        _mark(folder, mark)
    return mark


def _take(folder: AttemptFolder, task: Task, output: Mirrored) -> bool:
    mark = _own_mark(folder, task)
    version = output.version
    path = streams_of(folder)[version.stream]
    beginning = mark["streams"].get(version.stream)
    have = measure(path)[0]
    if output.goes_on:
        if beginning != version.beginning or have < output.pieces[0][0]:
            return False
        _append(path, have, output)
    elif beginning != version.beginning or have < version.total:
        mark["streams"].pop(version.stream, None)
        _mark(folder, mark)
        _lay_out(path, output)
        mark["streams"][version.stream] = version.beginning
        _mark(folder, mark)
    _bound(path, log_bounds(task.spec))
    return True


def _append(path: str, have: int, output: Mirrored) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        for at, data in output.pieces:
            rest = memoryview(data)[max(0, have - at) :]
            while rest:
                rest = rest[os.write(fd, rest) :]
    finally:
        os.close(fd)


def _lay_out(path: str, output: Mirrored) -> None:
    """With a hole where something is missing, which begins and ends with a block."""
    total = output.version.total
    fresh = f"{path}.{secrets.token_hex(4)}"
    fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.truncate(fd, total)
        for at, data in _joined(output):
            begin = -(-at // BLOCK) * BLOCK
            end = at + len(data)
            if end < total:
                end = end // BLOCK * BLOCK
            if begin < end:
                os.pwrite(fd, data[begin - at : end - at], begin)
    finally:
        os.close(fd)
    moved.forget(path)
    os.rename(fresh, path)


def _joined(output: Mirrored) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytearray]] = []
    for at, data in output.pieces:
        if found and found[-1][0] + len(found[-1][1]) == at:
            found[-1][1].extend(data)
        else:
            found.append((at, bytearray(data)))
    return [(at, bytes(data)) for at, data in found]


def _bound(path: str, bounds: LogBounds, *, final: bool = False) -> None:
    with contextlib.suppress(OSError):  # a full disk: the next who reads tries again
        LogBounder(path, bounds).bound(final=final)


def _complete(folder: AttemptFolder, task: Task) -> None:
    """It has ended: as the machine of the task has it, but for what a tool has given beside its

    result.
    """
    if os.path.exists(folder.result):
        return
    with _alone_in(folder):
        _own_mark(folder, task)
        with open(folder.log, "ab"):
            pass  # where nothing was written the record holds nothing
        for path in streams_of(folder).values():
            _bound(path, log_bounds(task.spec), final=True)
        ending = Ending(task.state, task.error, task.exit_code, task.summary, task.result)
        _put(folder.result, ending.document())


def _put(path: str, document: dict[str, Any]) -> None:
    fresh = f"{path}.{secrets.token_hex(4)}"
    with open(fresh, "x", encoding="utf-8") as file:
        json.dump(document, file)
    os.rename(fresh, path)
