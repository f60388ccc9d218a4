"""Output that lies on another machine: nodes copy it into the record, readers out of it.

A reader gets a file like the one that the node has, with a hole where the log was cut, and reads it
as if it had been written here.
"""

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable

from backburner.model.ending import Ending
from backburner.model.home import AttemptFolder, Home
from backburner.model.states import State
from backburner.model.task import Task
from backburner.runtime.output import measure_output
from backburner.store.postgres.mirror import Mirror, Mirrored, version_of
from backburner.store.postgres.node import NodeStore
from backburner.store.protocol import Scope
from backburner.work.log.stream import read_stream
from backburner.work.shell import log_bounds

_EVERY_S = 1.0
_SWEEP_EVERY_S = 3600.0
_UNUSED_S = 86400.0
_COPIED = "copied"
"""In a folder of copies: the number of the task that they are of."""
_BLOCK = 4096
"""A hole begins and ends with one; what is around it would be read as zeros."""


class Copier:
    """Keeps the record up with the logs of one node, and up to the end of each."""

    def __init__(self, store: NodeStore, home: Home, report: Callable[[str], None]) -> None:
        self._store = store
        self._home = home
        self._report = report
        self._copied: dict[tuple[str, int, str], int] = {}
        self._all_copied_at = time.monotonic()
        store.before_end.append(self.copy)

    async def run(self) -> None:
        """Again and again, until cancelled: what has grown since."""
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                for task in await self._store.kept():
                    if task.state in (State.RUNNING, State.INPUT_REQUIRED):
                        await self.copy(task)
                self._all_copied_at = time.monotonic()
            except Exception as error:  # noqa: BLE001 - the next copy has it all
                self._report(f"output was not copied: {type(error).__name__}: {error}")

    @property
    def behind_s(self) -> float:
        """Since everything was copied."""
        return time.monotonic() - self._all_copied_at

    async def copy(self, task: Task) -> None:
        """What there is now."""
        folder = self._home.attempt(task.id, task.attempt)
        grown: list[Mirrored] = []
        for name, path in _streams(folder).items():
            read = await asyncio.to_thread(read_stream, path, bounds=log_bounds(task.spec))
            if read.total != self._copied.get((task.id, task.attempt, name), 0):
                pieces = [(piece.offset, piece.data) for piece in read.segments]
                grown.append(Mirrored(task.attempt, name, read.total, pieces))
        if not grown:
            return
        await self._store.put_output(task.id, grown, measure_output(folder))
        for stream in grown:
            self._copied[task.id, task.attempt, stream.stream] = stream.total

    def forget(self, task_id: str) -> None:
        """It has ended."""
        for key in [key for key in self._copied if key[0] == task_id]:
            del self._copied[key]


class Copies:
    """What a reader has of the output of tasks on other machines, in a folder of its own."""

    def __init__(self, store: Mirror, home: Home) -> None:
        self._store = store
        self._home = home
        self._swept = -_SWEEP_EVERY_S

    async def fetch(self, task: Task) -> None:
        """Have what the record has of the output of a task's last attempt that has written."""
        await self._sweep()
        attempts = range(1, task.attempt + 1) if task.started_at is None else (task.attempt,)
        had: set[str] = set()
        for attempt in attempts:
            folder = self._home.attempt(task.id, attempt)
            if await asyncio.to_thread(_is_of, folder, task):
                had |= _versions(folder, attempt)
        for output in await self._store.outputs(task.id, Scope(task.owner), had):
            folder = self._home.attempt(task.id, output.attempt)
            if not _is_original(folder):
                await asyncio.to_thread(_lay_out, folder, task, output)
        folder = self._home.attempt(task.id, task.attempt)
        if task.state.terminal and not _is_original(folder):
            await asyncio.to_thread(_lay_out_result, folder, task)

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


def _is_of(folder: AttemptFolder, task: Task) -> bool:
    """Whether there are copies of this task, and of no other that had its id before."""
    try:
        with open(f"{folder.path}/{_COPIED}", encoding="ascii") as file:
            if file.read() == str(task.seq):
                os.utime(folder.path)  # somebody looks at them
                return True
    except FileNotFoundError:
        return False
    shutil.rmtree(folder.path, ignore_errors=True)
    return False


def _is_original(folder: AttemptFolder) -> bool:
    """Whether the attempt was carried out here: its log is no copy."""
    return os.path.exists(folder.log) and not os.path.exists(f"{folder.path}/{_COPIED}")


def _versions(folder: AttemptFolder, attempt: int) -> set[str]:
    found: set[str] = set()
    for stream, path in _streams(folder).items():
        with contextlib.suppress(FileNotFoundError):
            found.add(version_of(attempt, stream, os.stat(path).st_size))
    return found


def _mark(folder: AttemptFolder, task: Task) -> None:
    os.makedirs(folder.path, mode=0o700, exist_ok=True)
    fresh = f"{folder.path}/{_COPIED}.{secrets.token_hex(4)}"
    with open(fresh, "x", encoding="ascii") as file:
        file.write(str(task.seq))
    os.rename(fresh, f"{folder.path}/{_COPIED}")


def _lay_out_result(folder: AttemptFolder, task: Task) -> None:
    """As the machine of the task has it, but for what a tool has given beside its result."""
    if os.path.exists(folder.result):
        return
    _mark(folder, task)
    ending = Ending(task.state, task.error, task.exit_code, task.summary, task.result)
    fresh = f"{folder.result}.{secrets.token_hex(4)}"
    with open(fresh, "x", encoding="utf-8") as file:
        json.dump(ending.document(), file)
    os.rename(fresh, folder.result)


def _lay_out(folder: AttemptFolder, task: Task, output: Mirrored) -> None:
    path = _streams(folder)[output.stream]
    _mark(folder, task)
    fresh = f"{path}.{secrets.token_hex(4)}"  # several may lay out the same at once
    fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.truncate(fd, output.total)
        for index, (offset, data) in enumerate(output.pieces):
            begin = offset if index == 0 and offset == 0 else -(-offset // _BLOCK) * _BLOCK
            end = offset + len(data)
            if end < output.total:
                end = end // _BLOCK * _BLOCK
            os.pwrite(fd, data[begin - offset : end - offset], begin)
    finally:
        os.close(fd)
    os.rename(fresh, path)


def _streams(folder: AttemptFolder) -> dict[str, str]:
    return {"output": folder.log, "stderr": folder.stderr, "marks": folder.marks}
