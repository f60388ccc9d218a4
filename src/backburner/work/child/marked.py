"""The streams of a tool in a process of its own: one log, each line with its stream (E6)."""

import io
import threading

from backburner.work.log.streams import StreamMarks


class MarkedLog:
    """What both streams write to."""

    def __init__(self, target: io.TextIOBase) -> None:
        self._target = target
        self._lock = threading.RLock()  # a signal handler may print while something is printed
        self._marks = StreamMarks()

    def fileno(self) -> int:
        """The descriptor of the log."""
        return self._target.fileno()

    def write(self, stream: str, text: str) -> None:
        """Add a piece of output, which need not be whole lines."""
        with self._lock:
            self._target.write(self._marks.marked(stream, text))
            self._target.flush()


class MarkedStream(io.TextIOBase):
    """In the place of `sys.stdout` or `sys.stderr`."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, log: MarkedLog, name: str) -> None:
        super().__init__()
        self._log = log
        self._name = name

    def fileno(self) -> int:
        """Of the log: what a program that is started writes there carries no mark."""
        return self._log.fileno()

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, text: str, /) -> int:
        """Add it to the log."""
        if text:
            self._log.write(self._name, text)
        return len(text)
