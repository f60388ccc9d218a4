"""What whoever follows a session up may answer: done, or later."""

from dataclasses import dataclass

BUSY_WAIT_S = 1.0
"""How soon a session that was busy is asked again."""


@dataclass(frozen=True, slots=True)
class Later:
    """Returned by a callback: not now, ask again after so many seconds. It counts as no failure."""

    seconds: float = BUSY_WAIT_S


class Busy(Exception):
    """Raised by a callback: a live turn is running, ask again soon. It counts as no failure."""
