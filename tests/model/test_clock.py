"""The one place for time: durations for people, instants for the record and for JSON."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.model import clock
from backburner.model.clock import (
    SECOND,
    format_duration,
    from_rfc3339,
    parse_duration,
    rfc3339,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
instants = st.integers(0, 253_402_300_799_999_999)  # up to the end of the year 9999
seconds = st.floats(0, 1e9, allow_nan=False)


def test_wall_time_and_boot_time_are_in_microseconds() -> None:
    before = datetime.now(UTC)
    now = EPOCH + timedelta(microseconds=clock.now())
    assert before - timedelta(milliseconds=1) <= now <= datetime.now(UTC)
    first = clock.boot_now()
    assert 0 < first <= clock.boot_now() < first + 60 * SECOND


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("1.5", 1.5),
        ("15m", 900.0),
        ("1h30m", 5400.0),
        ("1h 30m", 5400.0),
        (" 2D ", 172_800.0),
        ("250ms", 0.25),
        ("1m250ms", 60.25),
        ("1w", 604_800.0),
        ("0.5h", 1800.0),
        ("0", 0.0),
    ],
)
def test_a_duration_is_read(text: str, expected: float) -> None:
    assert parse_duration(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "s", "h1", "-5", "-5s", "+5s", "1x", "1h30", "30m1", "1,5h", ".5s", "5.s"),
        *("1e3", "1e3s", "nan", "inf", "infinity", "forever", "1h-30m", "1h30mx", "one hour"),
        *("0x10", "1_000", "9" * 400, "9" * 400 + "w"),  # the last two are no finite number
    ],
)
def test_what_is_no_duration_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match="1h30m") as refusal:
        parse_duration(text)
    assert repr(text) in str(refusal.value)


@given(st.text())
def test_any_text_is_a_finite_duration_or_a_value_error(text: str) -> None:
    try:
        parsed = parse_duration(text)
    except ValueError:
        return
    assert 0 <= parsed < float("inf")


@given(st.dictionaries(st.sampled_from(["w", "d", "h", "m", "s", "ms"]), st.integers(0, 999)))
def test_every_sum_of_units_is_read(parts: dict[str, int]) -> None:
    size = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
    text = " ".join(f"{number}{unit}" for unit, number in parts.items())
    if parts:
        assert parse_duration(text) == pytest.approx(
            sum(number * size[unit] for unit, number in parts.items())
        )


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (-1, "0.0s"),
        (0, "0.0s"),
        (0.26, "0.3s"),
        (9.94, "9.9s"),
        (12.7, "12s"),
        (59.9, "59s"),
        (60, "1m"),
        (200, "3m 20s"),
        (3600, "1h"),
        (3661, "1h 1m"),
        (86_400, "1d"),
        (187_200, "2d 4h"),
    ],
)
def test_a_duration_for_people(length: float, shown: str) -> None:
    assert format_duration(length) == shown


@given(seconds)
def test_what_is_shown_can_be_read_again_and_is_off_by_less_than_the_unit_left_out(
    length: float,
) -> None:
    again = parse_duration(format_duration(length))
    if length < 10:
        assert again == pytest.approx(length, abs=0.0501)
    else:
        left_out = 1 if length < 3600 else 60 if length < 86_400 else 3600
        assert again <= length < again + left_out


@given(seconds)
def test_two_units_at_the_most_are_shown(length: float) -> None:
    assert re.fullmatch(r"\d+\.\ds|\d+[smhd]( \d+[smh])?", format_duration(length))


def test_an_instant_as_rfc_3339_is_in_utc_with_microseconds() -> None:
    assert rfc3339(0) == "1970-01-01T00:00:00.000000Z"
    assert rfc3339(1_794_735_000_000_001) == "2026-11-15T09:30:00.000001Z"


@given(instants)
def test_an_instant_survives_rfc_3339(instant: int) -> None:
    text = rfc3339(instant)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", text)
    assert from_rfc3339(text) == instant


@given(st.integers(10**12, 253_402_200_000_000_000))
def test_rfc_3339_sorts_as_time_does(instant: int) -> None:
    assert rfc3339(instant - 1) < rfc3339(instant) < rfc3339(instant + SECOND)


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1)),  # noqa: DTZ001 - the zone is added
    st.integers(-14 * 60, 14 * 60),
)
def test_any_offset_is_accepted(moment: datetime, minutes: int) -> None:
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert from_rfc3339(zoned.isoformat()) == (zoned - EPOCH) // timedelta(microseconds=1)


def test_a_time_without_an_offset_is_refused_with_a_remedy() -> None:
    with pytest.raises(ValueError, match=r"no time zone; add one"):
        from_rfc3339("2026-11-15T09:30:00")


@pytest.mark.parametrize("text", ["", "now", "2026-13-01T00:00:00Z", "2026-11-15T25:00:00Z", "1h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        from_rfc3339(text)
