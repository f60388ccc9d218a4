"""What whoever follows a session up may answer: done, or later."""

import math

from backburner.model.values import value

BUSY_WAIT_S = 1.0
"""How soon a session that was busy is asked again."""

LONGEST_WAIT_S = 86400.0
"""Who is busy for longer is asked every day."""


@value
class Later:
    """Returned by a callback: not now, ask again after so many seconds. It counts as no failure."""

    seconds: float = BUSY_WAIT_S

    @property
    def wait_s(self) -> float:
        """How long that is, whatever a callback has put there."""
        try:
            seconds = float(self.seconds)
        except (TypeError, ValueError, OverflowError):
            return BUSY_WAIT_S
        if math.isnan(seconds) or seconds <= 0:
            return BUSY_WAIT_S
        return min(seconds, LONGEST_WAIT_S)


class Busy(Exception):
    """Raised by a callback: a live turn is running, ask again soon. It counts as no failure."""
