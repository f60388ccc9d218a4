"""The clocks of a record: what leases and waits of signals are kept in, and the time of day.

Of one machine these are its boot time, which nobody can set back, and its wall clock. Many machines
have nothing in common but their database.
"""

from typing import Protocol

from backburner.model import clock
from backburner.model.clock import Instant


class LeaseClock(Protocol):
    """A clock, and what it belongs to."""

    @property
    def boot(self) -> str:
        """What was kept under another name is over: the clock began anew since."""
        ...

    def now(self) -> int:
        """Microseconds."""
        ...

    def in_boot_time(self, at: int) -> int:
        """A time of this clock as one of this machine's boot time."""
        ...

    def time_of_day(self) -> Instant:
        """By which all who share the record decide what is due, what is late and what is old."""
        ...


class BootClock:
    """The boot time of this machine."""

    def __init__(self, boot_id: str) -> None:
        self.boot = boot_id

    def now(self) -> int:
        """See LeaseClock.now."""
        return clock.boot_now()

    def in_boot_time(self, at: int) -> int:
        """See LeaseClock.in_boot_time."""
        return at

    def time_of_day(self) -> Instant:
        """See LeaseClock.time_of_day."""
        return clock.now()
