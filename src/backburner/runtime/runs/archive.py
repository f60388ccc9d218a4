"""The files that every end of a run leaves (E4): output.log and result.json, beside the event loop.

They are in place before the record tells of the end, so whoever hears of it finds them. To make a
file costs as much as a durable commit, so a thread does it while the loop goes on.
"""

import asyncio
import contextlib
import errno
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from backburner.model.home import AttemptFolder
from backburner.model.limits import Settings
from backburner.model.outcome import Image
from backburner.work.artifacts import put_images

Work = Callable[[], Sequence[str]]
"""Answers what went wrong, in words; it raises nothing that is foreseen."""

Told = Callable[[Sequence[str]], None]

_Item = tuple[Work, Told]

_BATCH = 16
"""As many are told together at most: the first of them waits for the last."""


class Archivist:
    """One thread that writes, started when it is first needed."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop = asyncio.get_running_loop()

    def do(self, work: Work, then: Told) -> None:
        """Have it done by the thread. ``then`` is called in the event loop, whatever happens."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="backburner-archivist", daemon=True
            )
            self._thread.start()
        self._queue.put((work, then))

    def close(self) -> None:
        """Write what waits, then stop."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            done = [_done(item)]
            with contextlib.suppress(Empty):  # to wake the loop costs more than a small file
                while len(done) < _BATCH and (item := self._queue.get_nowait()) is not None:
                    done.append(_done(item))
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(_tell, done)
            if item is None:
                return


def _done(item: _Item) -> tuple[Told, Sequence[str]]:
    work, then = item
    try:
        return then, work()
    except Exception as error:  # noqa: BLE001 - all runs depend on this thread
        return then, [f"its files were not written: {error}"]


def _tell(done: list[tuple[Told, Sequence[str]]]) -> None:
    for then, complaints in done:
        then(complaints)


def put_all(
    folder: AttemptFolder, document: Mapping[str, Any], images: Sequence[Image], limits: Settings
) -> list[str]:
    """All that the end of a run leaves. Answers what went wrong: a full disk must lose no end."""
    complaints: list[str] = []
    try:
        put_files(folder, document)
    except Exception as error:  # noqa: BLE001 - a document that is no JSON is no reason either
        complaints.append(f"result.json was not written: {error}")
    if images:
        try:
            complaints += put_images(folder, images, limits)[1]
        except OSError as error:
            complaints.append(f"its images were not kept: {error}")
    return complaints


def put_files(folder: AttemptFolder, document: Mapping[str, Any]) -> None:
    """Both files, result.json whole or not at all."""
    text = json.dumps(document).encode()
    with contextlib.suppress(FileExistsError):
        try:
            os.mkdir(folder.path, 0o700)
        except FileNotFoundError:
            os.makedirs(folder.path, mode=0o700, exist_ok=True)
    os.close(os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    new = f"{folder.result}.new"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        if os.write(fd, text) != len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)
    os.rename(new, folder.result)
