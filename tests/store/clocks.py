"""A wrong clock: of the machine, or the one by which a record decides."""

import pytest

from backburner.model import clock
from backburner.store.postgres.clock import DatabaseClock

_TRUE = clock.now
_TRUE_OF_DATABASE = DatabaseClock.time_of_day


def set_wall_clock(monkeypatch: pytest.MonkeyPatch, by: int) -> None:
    """That of this machine is so many microseconds ahead."""
    monkeypatch.setattr(clock, "now", lambda: _TRUE() + by)


def set_clock_of_record(monkeypatch: pytest.MonkeyPatch, by: int) -> None:
    """The one that a record goes by, of whichever kind it is; leases are left alone."""

    def of_database(self: DatabaseClock) -> int:
        return _TRUE_OF_DATABASE(self) + by

    set_wall_clock(monkeypatch, by)
    monkeypatch.setattr(DatabaseClock, "time_of_day", of_database)
