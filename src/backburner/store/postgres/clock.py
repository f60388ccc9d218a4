"""The database's clock, which is the one that all machines share: by it leases are kept, and it is

decided what is due, late or old.

Between two answers it is reckoned with the boot time of this machine, so that neither wall clock
matters here. What is reckoned is never ahead of the database, but behind it by the time that an
answer took: the quickest one tells best.
"""

from typing import Any

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.store.postgres.connection import Connection, explained

QUERY = b"(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class DatabaseClock:
    """Microseconds since 1970, as the database has it."""

    boot = "database"

    def __init__(self, at: Instant) -> None:
        """The database has just said that it is ``at``."""
        self._ahead = at - clock.boot_now()
        """Of this machine's boot time."""

    @classmethod
    def of(cls, connection: Connection) -> "DatabaseClock":
        """That of the database at the other end."""
        with explained():
            row: tuple[Any, ...] = connection.execute(b"SELECT " + QUERY).fetchall()[0]
        return cls(row[0])

    def was(self, asked: int, at: Instant) -> None:
        """The same again. In boot time it was ``asked`` then, or later."""
        surely = at - clock.boot_now()
        if not surely <= self._ahead <= at - asked:  # else it told nothing new
            self._ahead = surely

    def now(self) -> int:
        """See LeaseClock.now."""
        return clock.boot_now() + self._ahead

    def in_boot_time(self, at: int) -> int:
        """See LeaseClock.in_boot_time."""
        return at - self._ahead

    def time_of_day(self) -> Instant:
        """See LeaseClock.time_of_day."""
        return self.now()
