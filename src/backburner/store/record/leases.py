"""The clock that leases and waits of signals are kept in: nobody can set it back.

One machine has its boot time; many machines have nothing in common but their database.
"""

from typing import Protocol

from backburner.model import clock


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
