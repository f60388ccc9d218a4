"""The database's clock, which is the one that all machines share: leases are kept by it.

Between two transactions it is reckoned with the boot time of this machine, so that neither wall
clock matters here.
"""

from backburner.model import clock

QUERY = b"(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class DatabaseClock:
    """Microseconds since 1970, as the database has it."""

    boot = "database"

    def __init__(self) -> None:
        self._ahead = clock.now() - clock.boot_now()
        """Of this machine's boot time."""
        self.is_set = False
        """Whether the database was asked."""

    def was(self, at: int) -> None:
        """The database has just said what time it is."""
        self._ahead = at - clock.boot_now()
        self.is_set = True

    def now(self) -> int:
        """See LeaseClock.now."""
        return clock.boot_now() + self._ahead

    def in_boot_time(self, at: int) -> int:
        """See LeaseClock.in_boot_time."""
        return at - self._ahead
