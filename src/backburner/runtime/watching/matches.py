"""How often a session is told of lines that match: at once, then at most every ten seconds.

What comes in between is counted and told with the next. More than a thousand in a minute is a
flood, after which nothing more is told. Pure: the caller gives the time, in microseconds of boot
time.
"""

from backburner.model.clock import SECOND
from backburner.model.values import value

EVERY_S = 10.0
FLOOD = 1000
FLOOD_S = 60.0


@value
class Found:
    """A line that matches."""

    stream: str
    line: int
    """Where it begins in its stream."""
    text: str


class Matches:
    """What was found and has not been told yet."""

    def __init__(self) -> None:
        self._first: Found | None = None
        self._count = 0
        self._told_at: int | None = None
        self._minute_from = 0
        self._in_minute = 0

    def told(self, at: int) -> None:
        """The session was told at this time, perhaps by a keeper before us."""
        self._told_at = at

    def add(self, found: Found, now: int, *, counts: bool) -> None:
        """One more. ``counts`` is false of what was written before we came: that is no flood."""
        if self._first is None:
            self._first = found
        self._count += 1
        if now - self._minute_from > FLOOD_S * SECOND:
            self._minute_from, self._in_minute = now, 0
        self._in_minute += counts

    @property
    def flooding(self) -> bool:
        """Whether there are too many to be worth telling."""
        return self._in_minute > FLOOD

    def due_in(self, now: int) -> float | None:
        """Seconds until there is something to tell; None where there is nothing."""
        if self._first is None:
            return None
        if self._told_at is None:
            return 0.0
        return max(0.0, EVERY_S - (now - self._told_at) / SECOND)

    def take(self, now: int) -> tuple[Found, int] | None:
        """The first that was not told, and how many more there were; from now on they are told."""
        if self._first is None:
            return None
        taken = self._first, self._count - 1
        self._first, self._count, self._told_at = None, 0, now
        return taken
