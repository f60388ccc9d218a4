"""What a job reads from: a pipe or a terminal, with a bounded store of what it has not read yet."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios

from backburner.work.holder import frames

TYPE_CHECKING = False  # known to type checkers by its name; `typing` costs 6 ms
if TYPE_CHECKING:
    from collections.abc import Callable

MOST_PENDING = 1024 * 1024
"""Input that the job has not read. Above it clients wait, and give up when they like."""

_PIECE = 64 * 1024
_LONGEST_LINE = 4095
"""A terminal that edits lines drops what is longer (N_TTY_BUF_SIZE), without a word."""
_WINDOW = struct.Struct("HHHH")
_IUTF8 = 0o40000
"""Erasing takes a whole character; the standard library has no name for it before 3.13."""
_READS = 16
"""Of a terminal at a time, 4 KiB each, so that a flood of output does not starve the clients."""


class Source:
    """The writing end, and what waits to be written to it."""

    terminal = False

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.pending = bytearray()
        self.ended = False
        """Its end was sent: nothing more is taken."""
        self.deaf = False
        """The job has closed its end."""
        self.on_close: Callable[[int], None] | None = None
        """Told before the descriptor is closed: its number may be given to another."""
        os.set_blocking(fd, False)

    @property
    def open(self) -> bool:
        """Whether there is still something to write to."""
        return self.fd >= 0

    def take(self, data: bytes) -> bytes | None:
        """Take input. Answers why not; FULL may change."""
        if self.deaf:
            return frames.DEAF
        if self.ended:
            return frames.CLOSED
        if len(self.pending) + len(data) > MOST_PENDING:
            return frames.FULL
        self.pending += data
        self.flush()
        return None

    def flush(self) -> None:
        """Write what the job has room for."""
        try:
            while self.pending:
                # A pipe takes a part where it is full, and only the part is gone from here.
                written = os.write(self.fd, self.pending[:_PIECE])
                del self.pending[:written]
        except BlockingIOError:
            return
        except OSError:  # nobody reads it any more
            self.close(deaf=True)

    def close(self, *, deaf: bool = False) -> None:
        """There will be no more."""
        if self.open:
            if self.on_close is not None:
                self.on_close(self.fd)
            os.close(self.fd)
            self.fd = -1
        self.deaf = self.deaf or deaf
        self.pending.clear()


class Pipe(Source):
    """Standard input is a pipe; output goes where it always goes."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe2(os.O_CLOEXEC)
        super().__init__(writing)

    def enter_child(self) -> None:
        """In the child, before it becomes the command."""
        os.dup2(self._reading, 0)

    def leave_child(self) -> None:
        """The child has its end."""
        os.close(self._reading)

    def flush(self) -> None:
        """Write what the job has room for; close after the last of it."""
        super().flush()
        if self.ended and not self.pending:
            self.close()

    def end(self) -> bytes | None:
        """No more after what is pending. Again is no error."""
        self.ended = True
        if self.open:
            self.flush()
        return None

    def resize(self, rows: int, columns: int) -> bytes | None:  # noqa: ARG002 - it has no size
        """Not a pipe."""
        return frames.NO_TERMINAL


class Terminal(Source):
    """Input and output are a pseudo-terminal of a session of the job's own."""

    terminal = True

    def __init__(self, rows: int, columns: int) -> None:
        ours, self._theirs = os.openpty()
        super().__init__(ours)
        self._line = 0
        self._set_size(rows, columns)
        settings = termios.tcgetattr(self._theirs)
        settings[0] |= _IUTF8
        termios.tcsetattr(self._theirs, termios.TCSANOW, settings)

    def enter_child(self) -> None:
        """In the child, before it becomes the command."""
        os.login_tty(self._theirs)

    def leave_child(self) -> None:
        """Our copy of its end stays open: a job that closes its own has not hung up."""

    def take(self, data: bytes) -> bytes | None:
        """Take input, unless the terminal would cut a line of it."""
        first, *others = data.replace(b"\r", b"\n").split(b"\n")
        lengths = [self._line + len(first), *map(len, others)]
        if max(lengths) > _LONGEST_LINE and self._edits_lines():
            return frames.LONG
        refused = super().take(data)
        if refused is None:
            self._line = lengths[-1]
        return refused

    def end(self) -> bytes | None:
        """What a person does with Ctrl-D: in the middle of a line it takes two."""
        character: bytes = termios.tcgetattr(self._theirs)[6][termios.VEOF]
        self.pending += character * (2 if self._line and self._edits_lines() else 1)
        self._line = 0
        self.flush()
        return None

    def resize(self, rows: int, columns: int) -> bytes | None:
        """Set the size, of which the kernel tells the job.

        Where nothing has changed it is told too: whoever attaches wants to see it draw.
        """
        if not self._set_size(rows, columns):
            try:
                os.killpg(os.tcgetpgrp(self.fd), signal.SIGWINCH)
            except OSError:
                return None  # no group is in the foreground
        return None

    def read(self) -> bytes:
        """What the terminal shows and was not read yet; empty for now, or for good."""
        parts: list[bytes] = []
        try:
            for _ in range(_READS):
                part = os.read(self.fd, _PIECE)
                if not part:
                    break
                parts.append(part)
        except OSError:  # EAGAIN: no more for now; EIO: every other end is closed
            pass
        return b"".join(parts)

    def let_go(self) -> None:
        """The job has ended: without our copy, reading tells when everything was read."""
        os.close(self._theirs)

    def _edits_lines(self) -> bool:
        return bool(termios.tcgetattr(self._theirs)[3] & termios.ICANON)

    def _set_size(self, rows: int, columns: int) -> bool:
        """Whether that is another size than before."""
        new = _WINDOW.pack(rows, columns, 0, 0)
        if fcntl.ioctl(self.fd, termios.TIOCGWINSZ, bytes(8)) == new:
            return False
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, new)
        return True
