"""The log of a run inside an application: in memory until the run is on record, then a file.

Each line carries the stream that it was written to (E6). The file is bounded like that of any
other task; in memory no more is kept than the file would hold.
"""

import contextlib
import os
import threading

from backburner.model.home import AttemptFolder
from backburner.work.log.bounder import LogBounder
from backburner.work.log.bounds import LogBounds
from backburner.work.log.streams import StreamMarks
from backburner.work.plain_file import open_plain

_LOOK_EVERY = 256 * 1024
"""Bytes between two looks at whether the middle has to go."""


class RunLog:
    """Written to by the run, from any of its threads."""

    __slots__ = (
        "_bounder",
        "_bounds",
        "_closed",
        "_fd",
        "_folder",
        "_head",
        "_left_out",
        "_lock",
        "_lost",
        "_marks",
        "_since_look",
        "_tail",
        "_total",
    )  # fmt: skip

    def __init__(self, bounds: LogBounds) -> None:
        self._bounds = bounds
        self._lock = threading.Lock()
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0
        self._lost = 0
        self._total = 0
        self._since_look = 0
        self._marks = StreamMarks()
        self._folder: AttemptFolder | None = None
        self._closed = False
        self._fd: int | None = None
        self._bounder: LogBounder | None = None

    def write(self, stream: str, text: str) -> None:
        """Add a piece of output, which need not be whole lines."""
        with self._lock:
            if not text or self._closed:
                return  # a thread that outlives its task has nothing to say any more
            self._add(self._marks.marked(stream, text).encode(errors="replace"))

    def _add(self, data: bytes) -> None:
        self._total += len(data)
        if self._fd is None and self._folder is not None:
            self._open(self._folder)
        if self._fd is None:
            self._keep(data)
            return
        self._put(data)
        self._since_look += len(data)
        if self._bounder is not None and self._since_look >= _LOOK_EVERY:
            self._since_look = 0
            with contextlib.suppress(OSError):
                self._bounder.bound()

    def _keep(self, data: bytes) -> None:
        room = self._bounds.head - len(self._head)
        if room > 0 and not self._tail:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > self._bounds.tail + _LOOK_EVERY:
            surplus = len(self._tail) - self._bounds.tail
            del self._tail[:surplus]
            self._left_out += surplus

    def _put(self, data: bytes) -> None:
        assert self._fd is not None
        try:
            written = os.write(self._fd, data)
        except OSError:  # a full disk: the run must not end for its log
            written = 0
        self._lost += len(data) - written

    def keep_in(self, folder: AttemptFolder) -> None:
        """From now on in a file of this folder, which is made when there is something to write."""
        with self._lock:
            self._folder = folder
            if self._total:
                self._open(folder)

    def _open(self, folder: AttemptFolder) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            os.makedirs(folder.path, mode=0o700, exist_ok=True)
            self._fd = open_plain(folder.log, flags)
        except OSError:  # tried again with the next piece; until then in memory
            return
        self._bounder = LogBounder(folder.log, self._bounds)
        if self._head:
            self._put(bytes(self._head))
        if self._left_out:
            self._put(f"\n[{self._left_out:,} bytes of output were left out here]\n".encode())
        if self._tail:
            self._put(bytes(self._tail))
        self._head, self._tail = bytearray(), bytearray()

    def close(self) -> tuple[int, int]:
        """It is over: how many bytes were written, and how many of those are gone."""
        with self._lock:
            self._closed = True
            dropped = self._left_out + self._lost + len(self._head) + len(self._tail)
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None
                if self._bounder is not None:
                    with contextlib.suppress(OSError):
                        dropped += self._bounder.bound(final=True).dropped
            return self._total, dropped
