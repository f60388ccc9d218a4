"""X4: how often a session is told of matches. The time is given, so nothing waits."""

from backburner.model.clock import SECOND
from backburner.runtime.watching.matches import EVERY_S, FLOOD, FLOOD_S, Found, Matches


def line(number: int) -> Found:
    return Found("out", number, f"line {number}")


def test_x4_the_first_is_told_at_once_and_the_others_with_the_next() -> None:
    matches = Matches()
    assert matches.due_in(0) is None
    assert matches.take(0) is None
    matches.add(line(1), 0, counts=True)
    assert matches.due_in(0) == 0
    assert matches.take(0) == (line(1), 0)
    for number in range(2, 40):
        matches.add(line(number), SECOND, counts=True)
    assert matches.due_in(SECOND) == EVERY_S - 1
    assert matches.due_in(round(EVERY_S * SECOND)) == 0
    assert matches.take(round(EVERY_S * SECOND)) == (line(2), 37)
    assert matches.due_in(round(EVERY_S * SECOND)) is None


def test_x4_what_a_keeper_before_us_told_counts_for_the_time_in_between() -> None:
    matches = Matches()
    matches.told(100 * SECOND)
    matches.add(line(1), 104 * SECOND, counts=True)
    assert matches.due_in(104 * SECOND) == EVERY_S - 4


def test_x4_more_than_so_many_in_a_minute_are_a_flood() -> None:
    matches = Matches()
    for number in range(FLOOD):
        matches.add(line(number), SECOND, counts=True)
    assert not matches.flooding
    matches.add(line(FLOOD), 2 * SECOND, counts=True)
    assert matches.flooding


def test_x4_the_same_number_over_a_longer_time_is_none() -> None:
    matches = Matches()
    for number in range(3 * FLOOD):
        now = round(number * FLOOD_S * SECOND / FLOOD * 1.01)
        matches.add(line(number), now, counts=True)
        assert not matches.flooding


def test_x4_what_was_written_before_we_came_is_no_flood() -> None:
    matches = Matches()
    for number in range(3 * FLOOD):
        matches.add(line(number), 0, counts=False)
    assert not matches.flooding
    assert matches.take(0) == (line(0), 3 * FLOOD - 1)
