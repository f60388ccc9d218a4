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
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any

from backburner.model.home import AttemptFolder

Work = Callable[[], object]
Answer = asyncio.Future[Exception | None]
"""What went wrong, if anything did."""

_Item = tuple[Work, Answer]

_BATCH = 16
"""As many are told together at most: the first of them waits for the last."""


class Archivist:
    """One thread that writes, started when it is first needed."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[_Item | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._loop = asyncio.get_running_loop()

    async def put(self, folder: AttemptFolder, document: Mapping[str, Any]) -> Exception | None:
        """Put both files in place. Answers what went wrong: a full disk must not lose an end."""
        return await self.do(lambda: put_files(folder, document))

    async def do(self, work: Work) -> Exception | None:
        """Have it done by the thread."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="backburner-archivist", daemon=True
            )
            self._thread.start()
        done: Answer = self._loop.create_future()
        self._queue.put((work, done))
        return await done

    def close(self) -> None:
        """Write what waits, then stop."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            settled = [_done(item)]
            with contextlib.suppress(Empty):  # to wake the loop costs more than a small file
                while len(settled) < _BATCH and (item := self._queue.get_nowait()) is not None:
                    settled.append(_done(item))
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(_settle, settled)
            if item is None:
                return


def _done(item: _Item) -> tuple[Answer, Exception | None]:
    work, answer = item
    try:
        work()
    except Exception as error:  # noqa: BLE001 - all runs depend on this thread
        return answer, error
    return answer, None


def _settle(settled: list[tuple[Answer, Exception | None]]) -> None:
    for answer, error in settled:
        if not answer.done():
            answer.set_result(error)


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
