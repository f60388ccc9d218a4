"""Where the output of a terminal goes: to the log, and into memory for whoever attaches.

The log comes first and is never waited for: on a full disk, what it cannot take is counted, and the
log says so once it can.
"""

import os

from backburner.work.holder.modes import Modes

KEPT = 64 * 1024
"""The last of the output, for whoever attaches: more than a screenful of the busiest program."""


_LINE = 4096
"""Lines are kept whole if they are not longer."""


class Screen:
    """The output of a terminal."""

    def __init__(self, log: int) -> None:
        self._log = log
        self._lost = 0
        self._kept = bytearray()
        self._before = Modes()
        """What was switched by output that is not kept any more."""

    def show(self, output: bytes) -> None:
        """Put down what was shown."""
        self._keep(output)
        if self._lost:
            note = f"\r\n[backburner: {self._lost} bytes of output could not be written]\r\n"
            if self._write(note.encode()):
                self._lost += len(output)
                return
            self._lost = 0
        self._lost += self._write(output)

    def replay(self) -> bytes:
        """What brings another terminal to about the same view."""
        return self._before.redo() + self._kept

    def _keep(self, output: bytes) -> None:
        self._kept += output
        if len(self._kept) > 2 * KEPT:
            cut = len(self._kept) - KEPT
            cut = self._kept.find(b"\n", cut, cut + _LINE) + 1 or cut
            self._before.feed(bytes(self._kept[:cut]))
            del self._kept[:cut]

    def _write(self, data: bytes) -> int:
        """How many bytes could not be written."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._log, left) :]
        except OSError:  # the disk is full; the job must not wait for it
            pass
        return len(left)
