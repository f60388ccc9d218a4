"""Whether this machine may say of others that they are dead.

Who was out of touch with the database itself has heard of nobody meanwhile, and neither have the
others where it was the database that was gone: each then has its time to be heard of again.
"""

import time


class Contact:
    """How long it has lasted."""

    def __init__(self, silent_s: float) -> None:
        """A machine is dead that was silent for so long."""
        self._silent_s = silent_s
        self._begin = self._last = time.monotonic()

    def holds(self) -> bool:
        """The database has answered just now: has it for long enough, without a break?"""
        now = time.monotonic()
        if now - self._last > self._silent_s / 2:
            self._begin = now
        self._last = now
        return now - self._begin >= self._silent_s
