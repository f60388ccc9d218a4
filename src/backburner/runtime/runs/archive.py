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
from queue import SimpleQueue
from typing import Any

from backburner.model.home import AttemptFolder
from backburner.model.limits import Settings
from backburner.model.outcome import Image
from backburner.work.artifacts import put_images

Work = Callable[[AttemptFolder], Sequence[str]]
"""Answers what went wrong, in words; it raises nothing that is foreseen."""

Told = Callable[[Sequence[str]], None]

_Item = tuple[AttemptFolder, Work, Told | None]


class Archivist:
    """A thread that writes, started when it is first needed.

    One: folders are made in one place, for which two would wait in turn. It is handed all that one
    turn of the loop has for it, and tells of it in one go: what goes on together comes to the
    record together.
    """

    def __init__(self) -> None:
        self._arriving: list[_Item] = []
        self._queue: SimpleQueue[list[_Item] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop = asyncio.get_running_loop()

    def do(self, folder: AttemptFolder, work: Work, then: Told | None = None) -> None:
        """Have it done, in its turn. ``then`` is called in the event loop, whatever happens."""
        if not self._arriving:
            self._loop.call_soon(self._hand_over)
        self._arriving.append((folder, work, then))

    def _hand_over(self) -> None:
        if not self._arriving:
            return  # it was closed meanwhile
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="backburner-archivist", daemon=True
            )
            self._thread.start()
        self._queue.put(self._arriving)
        self._arriving = []

    def close(self) -> None:
        """Write what waits, then stop."""
        self._hand_over()
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (items := self._queue.get()) is not None:
            done = [told for item in items if (told := _done(item)) is not None]
            if not done:
                continue
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._tell, done)

    def _tell(self, done: list[tuple[Told, Sequence[str]]]) -> None:
        for then, complaints in done:
            try:
                then(complaints)
            except Exception as error:  # noqa: BLE001 - the others must hear of theirs
                what = "a run could not be seen off"
                self._loop.call_exception_handler({"message": what, "exception": error})


def _done(item: _Item) -> tuple[Told, Sequence[str]] | None:
    """Whom to tell of it, and what."""
    folder, work, then = item
    try:
        complaints = work(folder)
    except Exception as error:  # noqa: BLE001 - all runs depend on this thread
        complaints = [f"its files were not written: {error}"]
    return None if then is None else (then, complaints)


def prepare(folder: AttemptFolder) -> Sequence[str]:
    """What does not depend on how it ends, while its begin is written. What fails here fails again

    at the end, and is told then.
    """
    with contextlib.suppress(OSError):
        _make(folder)
    return ()


def put_away(folder: AttemptFolder) -> Sequence[str]:
    """It did not begin after all."""
    with contextlib.suppress(OSError):
        os.unlink(folder.log)
        os.rmdir(folder.path)
    return ()


def put_all(
    document: Mapping[str, Any], images: Sequence[Image], limits: Settings, folder: AttemptFolder
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
    new = f"{folder.result}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    if not os.access(folder.log, os.F_OK):
        _make(folder)
    fd = os.open(new, flags, 0o600)
    try:
        if os.write(fd, text) != len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)
    os.rename(new, folder.result)


def _make(folder: AttemptFolder) -> None:
    try:
        os.mkdir(folder.path, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(folder.path, mode=0o700, exist_ok=True)
    os.close(os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
