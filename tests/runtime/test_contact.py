"""E11: who was out of touch with the database calls nobody dead, nor whom it has heard of since."""

import pytest

from backburner.model import clock
from backburner.runtime.contact import Contact
from backburner.store.engine import Job, Silence

JOB = Job("bg_one", 1)
DEAD = Silence(JOB, 30, dead=True, node="nd_1", begun=True)
QUIET = Silence(JOB, 30, dead=False, node="nd_1", begun=True)


class Time:
    """Moved by hand; and the connection, broken by hand."""

    def __init__(self) -> None:
        self.now_s = 1000
        self.breaks = 1

    def boot_now(self) -> int:
        return self.now_s * clock.SECOND


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(clock, "boot_now", time.boot_now)
    return time


@pytest.fixture
def touch(time: Time) -> Contact:
    """Of a machine that is dead itself after half a minute."""
    return Contact(30, lambda: time.breaks)


def looks(time: Time, touch: Contact, seconds: int, *found: Silence) -> list[Job]:
    """Once a second."""
    dead: list[Job] = []
    for _ in range(seconds):
        time.now_s += 1
        dead = [each.job for each in touch.dead(found)]
    return dead


def test_it_lasts_while_each_look_is_answered_in_time(time: Time, touch: Contact) -> None:
    looks(time, touch, 29)
    assert touch.lasted_s() == 29
    time.now_s += 15
    assert touch.lasted_s() == 44


def test_a_look_that_had_to_wait_begins_it_anew(time: Time, touch: Contact) -> None:
    """Or a machine that was suspended: boot time goes on meanwhile."""
    looks(time, touch, 40)
    time.now_s += 16
    assert touch.lasted_s() == 0


def test_a_database_that_was_lost_for_a_moment_begins_it_anew(time: Time, touch: Contact) -> None:
    looks(time, touch, 40)
    time.breaks += 1
    assert touch.lasted_s() == 0


def test_who_is_quiet_and_then_dead_is_dead(time: Time, touch: Contact) -> None:
    assert looks(time, touch, 20, QUIET) == []
    assert looks(time, touch, 1, DEAD) == [JOB]


def test_who_seems_dead_all_of_a_sudden_is_looked_at_again(time: Time, touch: Contact) -> None:
    """The clock of the database was set, or it was suspended: nobody has been quiet before."""
    looks(time, touch, 60)
    assert looks(time, touch, 10, DEAD) == []
    looks(time, touch, 1)
    assert looks(time, touch, 10, DEAD) == [], "it was heard of in between"
    assert looks(time, touch, 1, DEAD) == [JOB]


def test_what_was_seen_before_an_outage_counts_for_nothing(time: Time, touch: Contact) -> None:
    looks(time, touch, 60, QUIET)
    time.breaks += 1
    assert looks(time, touch, 10, DEAD) == []


def test_one_who_is_silent_in_two_ways_is_dead_once(time: Time, touch: Contact) -> None:
    assert looks(time, touch, 20, DEAD, DEAD) == [JOB]
