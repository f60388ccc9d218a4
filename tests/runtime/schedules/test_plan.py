"""E9: what is fired now, and what becomes of what was missed; every time is given, none is now."""

import pytest

from backburner.model.clock import SECOND, Instant, from_rfc3339, rfc3339
from backburner.model.schedule import MADE_UP_MAX, Missed, Schedule, ScheduleState
from backburner.model.states import Kind
from backburner.runtime.schedules.calendar import Calendar
from backburner.runtime.schedules.plan import Plan, plan

MINUTE = 60 * SECOND
NOON = from_rfc3339("2026-06-01T12:00:00Z")


def decide(
    now: Instant,
    *,
    missed: str = "once",
    cron: str | None = "*/10 * * * *",
    at: Instant | None = None,
    jitter: float = 0.0,
) -> Plan:
    """For a schedule whose next firing is at noon."""
    calendar = Calendar(cron, at, "UTC", "sc_1", jitter)
    schedule = Schedule(
        seq=1,
        id="sc_1",
        owner="ada",
        session="chat",
        kind=Kind.SHELL,
        title="t",
        spec={},
        zone="UTC",
        state=ScheduleState.ACTIVE,
        created_at=NOON - MINUTE,
        next_at=NOON,
        due_at=calendar.due(NOON),
        cron=cron,
        at=at,
        missed=Missed(missed),
        jitter_s=jitter,
    )
    return plan(schedule, calendar, now)


def shown(given: Plan) -> tuple[list[str], str | None]:
    following = None if given.next_at is None else rfc3339(given.next_at)[11:16]
    return [rfc3339(each)[11:16] for each in given.nominal], following


@pytest.mark.parametrize("missed", Missed)
@pytest.mark.parametrize("late", [0, 1, 59 * SECOND, MINUTE])
def test_e9_a_firing_that_is_a_little_late_is_not_missed(missed: str, late: int) -> None:
    given = decide(NOON + late, missed=missed)
    assert shown(given) == (["12:00"], "12:10")
    assert given.passed_over is None
    assert not given.made_up


def test_e9_skip_makes_up_for_none() -> None:
    given = decide(NOON + 35 * MINUTE, missed="skip")
    assert shown(given) == ([], "12:40")
    assert given.passed_over is not None
    assert "missed" in given.passed_over


def test_e9_skip_fires_the_one_whose_time_is_now() -> None:
    given = decide(NOON + 30 * MINUTE + 20 * SECOND, missed="skip")
    assert shown(given) == (["12:30"], "12:40")
    assert given.passed_over is not None


def test_e9_once_makes_up_for_all_with_one() -> None:
    given = decide(NOON + 35 * MINUTE, missed="once")
    assert shown(given) == (["12:00"], "12:40")
    assert given.made_up


def test_e9_all_makes_up_for_each() -> None:
    given = decide(NOON + 35 * MINUTE, missed="all")
    assert shown(given) == (["12:00", "12:10", "12:20", "12:30"], "12:40")
    assert given.made_up
    assert given.passed_over is None


def test_e9_all_makes_up_for_a_hundred_and_says_so() -> None:
    given = decide(NOON + 365 * 24 * 60 * MINUTE + 5 * MINUTE, missed="all")
    assert len(given.nominal) == MADE_UP_MAX == 100
    assert given.nominal[0] == NOON
    assert len(set(given.nominal)) == 100
    assert shown(given)[1] == "12:10"
    assert given.passed_over is not None
    assert "more than 100 firings were missed" in given.passed_over
    exactly = decide(NOON + 99 * 10 * MINUTE + 5 * MINUTE, missed="all")
    assert len(exactly.nominal) == 100
    assert exactly.passed_over is None


@pytest.mark.parametrize(
    ("missed", "fired"), [("skip", []), ("once", ["12:00"]), ("all", ["12:00"])]
)
def test_e9_a_single_time_that_was_missed(missed: str, fired: list[str]) -> None:
    given = decide(NOON + 90 * MINUTE, missed=missed, cron=None, at=NOON)
    assert shown(given) == (fired, None)


@pytest.mark.parametrize("missed", Missed)
def test_e9_with_jitter_nothing_is_fired_before_it_is_due_or_twice(missed: str) -> None:
    """Whoever looks, and whenever: the next one is always after what was fired."""
    for minutes in range(0, 120, 7):
        now = NOON + 10 * MINUTE + minutes * MINUTE
        given = decide(now, missed=missed, jitter=540)
        calendar = Calendar("*/10 * * * *", None, "UTC", "sc_1", 540)
        assert all(calendar.due(each) <= now for each in given.nominal)
        assert given.next_at is not None
        assert given.next_at > NOON
        assert all(each < given.next_at for each in given.nominal)
        if given.made_up or not given.nominal:
            assert calendar.due(given.next_at) > now
