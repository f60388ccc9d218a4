"""E9: when a schedule fires, in zones whose clocks are set; every time is given, none is now."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model.clock import SECOND, Instant, from_rfc3339, rfc3339
from backburner.model.errors import UsageError
from backburner.model.ids import is_valid
from backburner.runtime.schedules.calendar import Calendar, task_id, zone_of

BERLIN = "Europe/Berlin"
HOUR = 3600 * SECOND


def calendar(cron: str, zone: str = "UTC", *, jitter: float = 0.0, key: str = "sc_1") -> Calendar:
    return Calendar(cron, None, zone, key, jitter)


def firings(cron: str, zone: str, after: str, count: int) -> list[str]:
    """The next times as the clocks of that zone show them, with their offsets."""
    times: list[str] = []
    at = from_rfc3339(after)
    for _ in range(count):
        following = calendar(cron, zone).following(at)
        assert following is not None
        assert following > at
        at = following
        local = datetime.fromtimestamp(at / SECOND, UTC).astimezone(ZoneInfo(zone))
        times.append(local.isoformat(timespec="minutes"))
    return times


def test_e9_a_time_in_the_spring_gap_fires_when_the_clocks_go_on() -> None:
    """On the 29th of March 2026 Berlin has no 02:30."""
    assert firings("30 2 * * *", BERLIN, "2026-03-28T12:00:00Z", 2) == [
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:30+02:00",
    ]
    assert firings("0,30 2-3 * * *", BERLIN, "2026-03-28T12:00:00Z", 3) == [
        "2026-03-29T03:00+02:00",
        "2026-03-29T03:30+02:00",
        "2026-03-30T02:00+02:00",
    ]


def test_e9_a_time_in_the_autumn_fold_fires_once() -> None:
    """On the 25th of October 2026 Berlin has 02:30 twice."""
    assert firings("30 2 * * *", BERLIN, "2026-10-24T12:00:00Z", 2) == [
        "2026-10-25T02:30+02:00",
        "2026-10-26T02:30+01:00",
    ]
    # Also for one who looks only during the second one.
    assert firings("30 2 * * *", BERLIN, "2026-10-25T01:15:00Z", 1) == ["2026-10-26T02:30+01:00"]


def test_e9_what_means_every_hour_fires_every_hour_that_passes() -> None:
    assert firings("30 * * * *", BERLIN, "2026-10-24T23:45:00Z", 3) == [
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:30+01:00",
        "2026-10-25T03:30+01:00",
    ]
    assert firings("30 * * * *", BERLIN, "2026-03-29T00:00:00Z", 2) == [
        "2026-03-29T01:30+01:00",
        "2026-03-29T03:30+02:00",
    ]
    fold = firings("*/20 * * * *", BERLIN, "2026-10-24T23:50:00Z", 9)
    assert fold[:7] == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:20+02:00",
        "2026-10-25T02:40+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T02:20+01:00",
        "2026-10-25T02:40+01:00",
        "2026-10-25T03:00+01:00",
    ]


@pytest.mark.parametrize(
    ("zone", "after", "expected"),
    [
        ("Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-01T09:00+05:30"),
        ("Asia/Kathmandu", "2026-01-01T00:00:00Z", "2026-01-01T09:00+05:45"),
        ("Australia/Lord_Howe", "2026-01-01T00:00:00Z", "2026-01-02T09:00+11:00"),
        ("America/St_Johns", "2026-07-01T00:00:00Z", "2026-07-01T09:00-02:30"),
    ],
)
def test_e9_zones_need_not_be_whole_hours_apart(zone: str, after: str, expected: str) -> None:
    assert firings("0 9 * * *", zone, after, 1) == [expected]


def test_e9_clocks_that_are_set_by_half_an_hour() -> None:
    """Lord Howe: at 02:00 on the 4th of October 2026 it is 02:30; back on the 5th of April."""
    zone = "Australia/Lord_Howe"
    assert firings("15 2 * * *", zone, "2026-10-03T00:00:00Z", 2) == [
        "2026-10-04T02:30+11:00",
        "2026-10-05T02:15+11:00",
    ]
    assert firings("*/15 3 * * *", zone, "2026-10-03T14:00:00Z", 2) == [
        "2026-10-04T03:00+11:00",
        "2026-10-04T03:15+11:00",
    ]
    assert firings("45 1 * * *", zone, "2026-04-04T00:00:00Z", 2) == [
        "2026-04-05T01:45+11:00",
        "2026-04-06T01:45+10:30",
    ]
    assert firings("*/30 * * * *", zone, "2026-04-04T14:10:00Z", 4) == [
        "2026-04-05T01:30+11:00",
        "2026-04-05T01:30+10:30",
        "2026-04-05T02:00+10:30",
        "2026-04-05T02:30+10:30",
    ]


def test_e9_leap_days_and_the_31st() -> None:
    assert firings("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 2) == [
        "2028-02-29T00:00+00:00",
        "2032-02-29T00:00+00:00",
    ]
    months = firings("0 0 31 * *", "UTC", "2026-01-01T00:00:00Z", 7)
    assert [text[5:7] for text in months] == ["01", "03", "05", "07", "08", "10", "12"]
    assert firings("0 0 L 2 *", "UTC", "2026-01-01T00:00:00Z", 1) == ["2026-02-28T00:00+00:00"]


def test_e9_an_expression_that_never_fires_has_no_next_time() -> None:
    never = calendar("0 0 */31 * MON#2")  # the first of a month is never its second Monday
    never.check()
    assert never.following(from_rfc3339("2026-01-01T00:00:00Z")) is None


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* * * * 9", "0 0 30 2 *", "@daily", "a b c d e",
     "*/0 * * * *", "5-1 * * * *", "1/2/3 * * * *", "* * * * ²L", "1" * 300 + " * * * *"],
)  # fmt: skip
def test_e9_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(UsageError) as refused:
        calendar(expression).check()
    assert refused.value.remedy


@given(st.text(alphabet="0123456789*/-,#LWLMONFRI ", max_size=40))
def test_e9_nothing_that_is_given_as_an_expression_breaks_us(expression: str) -> None:
    try:
        calendar(expression, BERLIN).check()
    except UsageError:
        return
    following = calendar(expression, BERLIN).following(0)
    assert following is None or following > 0


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("new_york", "America/New_York"),
    ],
)
def test_e9_an_unknown_zone_is_refused_with_what_may_be_meant(name: str, meant: str) -> None:
    with pytest.raises(UsageError) as refused:
        zone_of(name)
    assert meant in refused.value.remedy


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "/etc/localtime", "Mars/Phobos", "a\0b"])
def test_e9_a_zone_is_a_name_and_never_a_path(name: str) -> None:
    with pytest.raises(UsageError):
        zone_of(name)


CRONS = st.sampled_from(
    ["* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 1 * *", "15 1-4 * * *", "0 */5 * * SUN"]
)
ZONES = st.sampled_from(["UTC", BERLIN, "Australia/Lord_Howe", "America/St_Johns", "Asia/Gaza"])
TIMES = st.integers(0, 2 * 365 * 24 * 60).map(
    lambda minutes: from_rfc3339("2026-01-01T00:00:30Z") + minutes * 60 * SECOND
)


@given(CRONS, ZONES, TIMES)
def test_e9_nominal_times_rise_and_do_not_depend_on_when_one_looks(
    cron: str, zone: str, after: Instant
) -> None:
    """Whoever looks at any time before it finds the same next time."""
    times = calendar(cron, zone)
    first = times.following(after)
    assert first is not None
    assert first > after
    assert times.following((after + first) // 2) == first
    assert times.following(first - 1) == first
    second = times.following(first)
    assert second is not None
    assert second > first
    local = datetime.fromtimestamp(first / SECOND, UTC).astimezone(ZoneInfo(zone))
    assert local.second == 0


@given(CRONS, ZONES, TIMES, st.floats(0, 7200), st.text(min_size=1, max_size=10))
def test_e9_jitter_is_the_same_for_a_firing_and_ends_before_the_next(
    cron: str, zone: str, after: Instant, jitter: float, key: str
) -> None:
    times = calendar(cron, zone, jitter=jitter, key=key)
    nominal = times.following(after)
    assert nominal is not None
    due = times.due(nominal)
    assert due == times.due(nominal)
    assert 0 <= due - nominal <= round(jitter * SECOND)
    following = times.following(nominal)
    assert following is not None
    assert due < following
    following_due = times.next_due(due)
    assert following_due == following


def test_e9_jitter_spreads() -> None:
    at = from_rfc3339("2026-01-01T00:00:00Z")
    late = {calendar("0 0 * * *", jitter=600, key=f"sc_{n}").due(at) - at for n in range(50)}
    assert len(late) > 45
    assert max(late) > 300 * SECOND


def test_e9_the_id_of_a_firing_is_known_by_its_schedule_and_its_time() -> None:
    ids = [task_id(key, at) for key in ("sc_1", "sc_2") for at in (0, 1)]
    assert len(set(ids)) == 4
    assert all(is_valid(each) and each.startswith("bg_") and len(each) == 19 for each in ids)
    assert task_id("sc_1", 0) == ids[0]


def test_e9_a_single_time_comes_once() -> None:
    at = from_rfc3339("2026-01-01T00:00:00Z")
    once = Calendar(None, at, BERLIN, "sc_1")
    assert once.following(at - 1) == at
    assert once.following(at) is None
    assert once.due(at) == at


def test_e9_a_year_of_every_minute_goes_up_by_minutes() -> None:
    """Through both changes of the clocks, as those who wait see it."""
    times = calendar("*/30 * * * *", BERLIN)
    at = from_rfc3339("2026-01-01T00:00:00Z")
    seen = [at]
    for _ in range(2 * 24 * 365):
        following = times.following(seen[-1])
        assert following is not None
        seen.append(following)
    steps = {later - earlier for earlier, later in pairwise(seen)}
    assert steps == {30 * 60 * SECOND}, [rfc3339(each) for each in seen[:3]]
    assert timedelta(microseconds=seen[-1] - at) == timedelta(days=365)


@pytest.mark.parametrize("expression", ["* * * * *", "*/7 * * * *", "* 0-11 * * *", "0 9,10 * * *"])
def test_e9_jitter_makes_no_long_search(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of jitter lies a day back, with 1440 minutes; only the last of them can matter."""
    wide = calendar(expression, jitter=86400.0)
    asked = 0
    following = Calendar.following

    def counted(self: Calendar, after: int) -> int | None:
        nonlocal asked
        asked += 1
        return following(self, after)

    for hour in range(24):
        now = (hour * 3600 + 1234) * SECOND
        nominal: int | None = following(wide, now - 86400 * SECOND - 1)
        while nominal is not None and wide.due(nominal) <= now:
            nominal = following(wide, nominal)
        asked = 0
        with monkeypatch.context() as patch:
            patch.setattr(Calendar, "following", counted)
            assert wide.next_due(now) == nominal
        assert asked < 30
