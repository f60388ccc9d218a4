"""When a schedule fires: cron expressions and single times, in time zones whose clocks are set.

Pure: the time of day comes from the caller. A wall time that is named in the expression, such as
`30 2 * * *`, happens once each day: where clocks are set forward over it, at the first minute that
there is; where they are set back, the first time. An expression with a `*` for minutes or hours
means all those that pass: none is made up for and none left out. So does Debian's cron.
"""

import difflib
import hashlib
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any

from backburner.model.clock import SECOND, Instant
from backburner.model.errors import UsageError
from backburner.model.ids import ALPHABET, PREFIX
from backburner.model.schedule import EXPRESSION_MAX_CHARS, NewSchedule, Schedule
from backburner.model.values import value

_FIELDS = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SHIFT = timedelta(hours=3)
"""More than any clock is set forward or back at once, but for a zone that crosses the date line."""
_MINUTE = timedelta(minutes=1)
_MINUTE_US = 60 * SECOND
_LONGEST_GAP = 26 * 60
_EXAMPLES = "write for example '*/10 * * * *' or '30 2 * * MON-FRI'"


def zone_of(name: str) -> tzinfo:
    """The time zone of this name. UsageError where there is none."""
    from zoneinfo import ZoneInfo, available_timezones

    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("a time zone is given by its name", remedy="use one such as Europe/Berlin")
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # unknown; or a path, a folder, no text for a path
        pass
    known = sorted(available_timezones())
    wanted = name.casefold()
    near = [each for each in known if each.casefold() == wanted] or [
        *(each for each in known if each.rpartition("/")[2].casefold() == wanted),
        *difflib.get_close_matches(name, known, n=3),
    ]
    meant = " or ".join([*dict.fromkeys(near)][:3])
    remedy = f"did you mean {meant}?" if meant else "use one such as Europe/Berlin"
    raise UsageError(f"there is no time zone {name[:60]!r}", remedy=remedy)


@value
class Calendar:
    """The nominal times of one schedule."""

    cron: str | None
    at: Instant | None
    zone: str
    key: str
    """Of whom: jitter depends on it."""
    jitter_s: float = 0.0

    @classmethod
    def of(cls, schedule: Schedule | NewSchedule) -> "Calendar":
        """That of a schedule."""
        return cls(schedule.cron, schedule.at, schedule.zone, schedule.id, schedule.jitter_s)

    def check(self) -> None:
        """UsageError where the expression or the zone means nothing."""
        zone_of(self.zone)
        if self.cron is not None:
            _simulator(self.cron, datetime(2000, 1, 1))  # noqa: DTZ001 - wall time of any zone

    def following(self, after: Instant) -> Instant | None:
        """The first nominal time after this one."""
        if self.cron is None:
            return self.at if self.at is not None and self.at > after else None
        return _following(self.cron, self.zone, after)

    def due(self, nominal: Instant) -> Instant:
        """When that firing is made: its jitter is the same whoever asks, and ends before the next

        nominal time.
        """
        if not self.jitter_s:
            return nominal
        longest = round(self.jitter_s * SECOND)
        if (following := self.following(nominal)) is not None:
            longest = min(longest, following - nominal - SECOND)
        return nominal + _hash(self.key, "jitter", nominal) % (longest + 1)

    def next_due(self, now: Instant) -> Instant | None:
        """The first nominal time whose firing is to be made after ``now``."""
        first = self.following(now - round(self.jitter_s * SECOND) - 1)
        if first is None or first > now:
            return first
        # A firing is made before the next nominal time: only that of the last one can be to come.
        last = self._last(first, now)
        return last if self.due(last) > now else self.following(last)

    def _last(self, first: Instant, now: Instant) -> Instant:
        """The last nominal time up to now, given one: by halves, as there may be 1440 a day."""
        high = now
        while high - first > _MINUTE_US:
            middle = (first + high) // 2
            found = self.following(middle)
            if found is not None and found <= now:
                first = found
            else:
                high = middle
        found = self.following(first)
        return first if found is None or found > now else found


def task_id(schedule_id: str, nominal: Instant) -> str:
    """The id of the task that a firing starts. Who does not know the schedule cannot guess it."""
    number = _hash(schedule_id, "task", nominal)
    return PREFIX + "".join(ALPHABET[number >> 5 * place & 31] for place in range(16))


def _hash(key: str, what: str, nominal: Instant) -> int:
    text = f"{what} {nominal} {key}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=10).digest(), "big")


def _simulator(expression: str, start: datetime) -> Any:
    """The wall times of an expression after this one."""
    from cronsim import CronSim, CronSimError

    fields = expression.split()
    if len(expression) > EXPRESSION_MAX_CHARS or len(fields) != _FIELDS:
        raise UsageError(
            f"a cron expression has 5 fields, and {expression[:60]!r} has {len(fields)}",
            remedy=f"minute, hour, day of month, month, day of week: {_EXAMPLES}",
        )
    try:
        return CronSim(expression, start)
    except (CronSimError, ValueError, AssertionError, IndexError) as error:
        field = str(error).removeprefix("Bad ").replace("-", " ") or "a field"
        raise UsageError(
            f"{expression!r} is no cron expression: its {field} is wrong", remedy=_EXAMPLES
        ) from None


@lru_cache(maxsize=1024)
def _following(expression: str, zone: str, after: Instant) -> Instant | None:
    place = zone_of(zone)
    moment = _EPOCH + timedelta(microseconds=after)
    local = moment.astimezone(place)
    wall = local.replace(tzinfo=None, fold=0)
    try:
        first = _to_instants(next(_simulator(expression, wall)), place, expression)
        if first and _is_steady(moment, place) and _is_steady(_moment(first[0]), place):
            return first[0]
        return _search(expression, place, after, wall - _SHIFT)
    except (StopIteration, OverflowError):
        return None


def _search(expression: str, place: tzinfo, after: Instant, start: datetime) -> Instant | None:
    """Near a time at which clocks are set, wall times are not in the order of what happens."""
    best: tuple[Instant, datetime] | None = None
    for wall in _simulator(expression, start):
        if best is not None and wall > best[1] + _SHIFT:
            break
        for instant in _to_instants(wall, place, expression):
            if instant > after and (best is None or instant < best[0]):
                best = instant, wall
    return None if best is None else best[0]


def _to_instants(wall: datetime, place: tzinfo, expression: str) -> list[Instant]:
    """When a wall time happens: once, or never and twice where clocks are set."""
    first, second = (_instant(wall.replace(tzinfo=place, fold=fold)) for fold in (0, 1))
    minute, hour = expression.split()[:2]
    every = minute.startswith("*") or hour.startswith("*")
    if _is_real(wall, place):
        return [first, second] if every and first != second else [first]
    if every:
        return []
    for _ in range(_LONGEST_GAP):
        wall += _MINUTE
        if _is_real(wall, place):
            break
    return [_instant(wall.replace(tzinfo=place))]


def _is_real(wall: datetime, place: tzinfo) -> bool:
    there = wall.replace(tzinfo=place).astimezone(UTC).astimezone(place)
    return there.replace(tzinfo=None, fold=0) == wall


def _is_steady(moment: datetime, place: tzinfo) -> bool:
    """Whether no clock is set near that time."""
    offsets = {
        (moment + shift).astimezone(place).utcoffset() for shift in (-_SHIFT, timedelta(0), _SHIFT)
    }
    return len(offsets) == 1


def _moment(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def _instant(moment: datetime) -> Instant:
    return (moment - _EPOCH) // timedelta(microseconds=1)
