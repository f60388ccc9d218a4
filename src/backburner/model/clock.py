"""The one place for time.

Wall time is an integer count of microseconds since the epoch, in UTC: exact in SQLite, cheap to
compare. Anything that measures how long something took or may take uses boot time, because wall
time can be set back and boot time cannot.
"""

import math
import re
import time
from datetime import UTC, datetime, timedelta

Instant = int
"""Microseconds since 1970-01-01T00:00:00Z."""

SECOND = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> Instant:
    """The wall clock."""
    return time.time_ns() // 1000


def boot_now() -> int:
    """Microseconds since the machine started; never goes back while the machine is up."""
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1000


def rfc3339(instant: Instant) -> str:
    """``2026-11-15T09:30:00.000000Z``."""
    moment = datetime.fromtimestamp(instant // SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{instant % SECOND:06d}Z"


def from_rfc3339(text: str) -> Instant:
    """The inverse of `rfc3339`; any offset is accepted, a missing one is an error."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; add one, such as Z or +02:00")
    # Not through a float, which has no room for microseconds in far years.
    return (moment - _EPOCH) // timedelta(microseconds=1)


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|s|m|h|d|w))")


def parse_duration(text: str) -> float:
    """Seconds from ``90``, ``90s``, ``1h30m``, ``2d``, ``250ms``.

    Raises ValueError with what is accepted.
    """
    compact = text.strip().lower().replace(" ", "")
    if re.fullmatch(r"\d+(\.\d+)?", compact):
        compact += "s"
    parts = _DURATION.findall(compact)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    whole = "".join(number + unit for number, unit in parts) == compact
    if not parts or not whole or not math.isfinite(seconds):
        raise ValueError(f"{text!r} is no duration; write for example 90s, 15m, 1h30m or 2d")
    return seconds


def format_duration(seconds: float) -> str:
    """A duration for people, two units at the most: ``0.3s``, ``12s``, ``3m 20s``, ``2d 4h``."""
    if seconds < 0:
        seconds = 0.0
    if seconds < 10:  # noqa: PLR2004 - below ten seconds people care for tenths
        return f"{seconds:.1f}s"
    whole = int(seconds)
    for size, unit, smaller, small_unit in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{unit} {rest}{small_unit}" if rest else f"{whole // size}{unit}"
    return f"{whole}s"
