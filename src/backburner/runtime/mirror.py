"""Output that lies on another machine: nodes copy it into the record, readers out of it.

A reader gets a file like the one that the node has, with a hole where the log was cut, and reads it
as if it had been written here.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable

from backburner.model.home import AttemptFolder, Home
from backburner.model.states import State
from backburner.model.task import Task
from backburner.store.postgres.mirror import Mirror, Mirrored
from backburner.store.postgres.node import NodeStore
from backburner.work.log.stream import read_stream
from backburner.work.shell import log_bounds

_EVERY_S = 1.0
_BLOCK = 4096
"""A hole begins and ends with one; what is around it would be read as zeros."""


class Copier:
    """Keeps the record up with the logs of one node, and up to the end of each."""

    def __init__(self, store: NodeStore, home: Home, report: Callable[[str], None]) -> None:
        self._store = store
        self._home = home
        self._report = report
        self._copied: dict[tuple[str, int, str], int] = {}
        store.before_end = self.copy

    async def run(self) -> None:
        """Again and again, until cancelled: what has grown since."""
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                for task in await self._store.kept():
                    if task.state in (State.RUNNING, State.INPUT_REQUIRED):
                        await self.copy(task)
            except Exception as error:  # noqa: BLE001 - the next copy has it all
                self._report(f"output was not copied: {type(error).__name__}: {error}")

    async def copy(self, task: Task) -> None:
        """What there is now."""
        folder = self._home.attempt(task.id, task.attempt)
        for name, path in _streams(folder).items():
            read = await asyncio.to_thread(read_stream, path, bounds=log_bounds(task.spec))
            key = (task.id, task.attempt, name)
            if read.total == self._copied.get(key, 0):
                continue
            pieces = [(piece.offset, piece.data) for piece in read.segments]
            await self._store.put_output(task.id, Mirrored(task.attempt, name, read.total, pieces))
            self._copied[key] = read.total

    def forget(self, task_id: str) -> None:
        """It has ended."""
        for key in [key for key in self._copied if key[0] == task_id]:
            del self._copied[key]


async def fetch_output(store: Mirror, home: Home, task: Task) -> None:
    """Have what the record has of the output of a task's last attempt."""
    folder = home.attempt(task.id, task.attempt)
    for output in await store.outputs(task.id, task.attempt):
        await asyncio.to_thread(_lay_out, folder, output)


def _lay_out(folder: AttemptFolder, output: Mirrored) -> None:
    path = _streams(folder)[output.stream]
    with contextlib.suppress(FileNotFoundError):
        if os.stat(path).st_size >= output.total:  # the log itself, or the newest copy
            return
    os.makedirs(folder.path, mode=0o700, exist_ok=True)
    fresh = f"{path}.{os.getpid()}"
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
    return {"output": folder.log, "stderr": folder.stderr}
