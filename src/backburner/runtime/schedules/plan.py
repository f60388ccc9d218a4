"""What is to be fired now: a pure decision from a schedule, its calendar and the time."""

from backburner.model.clock import SECOND, Instant, rfc3339
from backburner.model.schedule import LATE_S, MADE_UP_MAX, Missed, Schedule
from backburner.model.values import value
from backburner.runtime.schedules.calendar import Calendar

_LATE = round(LATE_S * SECOND)


@value
class Plan:
    """The firings to make now, and the next one."""

    nominal: tuple[Instant, ...]
    next_at: Instant | None
    made_up: bool = False
    passed_over: str | None = None
    """What is not made up for, in words."""


def plan(schedule: Schedule, calendar: Calendar, now: Instant) -> Plan:
    """For an active schedule whose time has come."""
    first, due = schedule.next_at, schedule.due_at
    assert first is not None
    assert due is not None
    if now - due <= _LATE:
        return Plan((first,), calendar.following(first))
    match schedule.missed:
        case Missed.SKIP:
            said = f"missed: it was due {rfc3339(due)}, and nobody was there"
            latest = calendar.next_due(now - _LATE - 1)
            if latest is not None and latest > first and calendar.due(latest) <= now:
                return Plan((latest,), calendar.following(latest), passed_over=said)
            return Plan((), calendar.next_due(now), passed_over=said)
        case Missed.ONCE:
            return Plan((first,), calendar.next_due(now), made_up=True)
        case Missed.ALL:
            return _make_up(first, calendar, now)


def _make_up(first: Instant, calendar: Calendar, now: Instant) -> Plan:
    """The oldest ones, as many as are allowed; the next is one that is not due yet."""
    missed = [first]
    while (following := calendar.following(missed[-1])) is not None:
        if calendar.due(following) > now:
            return Plan(tuple(missed), following, made_up=True)
        if len(missed) == MADE_UP_MAX:
            said = (
                f"more than {MADE_UP_MAX} firings were missed: "
                f"those from {rfc3339(following)} on are not made up for"
            )
            return Plan(tuple(missed), calendar.next_due(now), made_up=True, passed_over=said)
        missed.append(following)
    return Plan(tuple(missed), None, made_up=True)
