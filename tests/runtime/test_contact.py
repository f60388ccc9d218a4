"""E11: who was out of touch with the database calls nobody dead."""

import pytest

from backburner.runtime import contact
from backburner.runtime.contact import Contact


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(contact, "time", clock)
    return clock


def looks(clock: Clock, touch: Contact, seconds: int) -> bool:
    """Once a second."""
    held = False
    for _ in range(seconds):
        clock.now += 1
        held = touch.holds()
    return held


def test_it_holds_when_it_has_lasted_as_long_as_the_dead_are_silent(clock: Clock) -> None:
    touch = Contact(30)
    assert not looks(clock, touch, 29)
    assert looks(clock, touch, 1)


def test_a_look_that_had_to_wait_begins_it_anew(clock: Clock) -> None:
    touch = Contact(30)
    assert looks(clock, touch, 40)
    clock.now += 16
    assert not touch.holds()
    assert not looks(clock, touch, 29)
    assert looks(clock, touch, 1)
