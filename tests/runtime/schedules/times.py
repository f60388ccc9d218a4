"""Times for schedules of the tests: soon, or as if nobody had looked for a while."""

from datetime import UTC, datetime, timedelta

from backburner import Backburner, Schedule
from backburner.model import clock
from backburner.model.clock import SECOND, Instant

SOON_S = 2.0
"""A busy machine may take a second to write the schedule, and what has passed is refused."""


def soon(seconds: float = SOON_S) -> datetime:
    """A single time that comes in a moment."""
    return datetime.now(UTC) + timedelta(seconds=seconds)


def minutes_ago(minutes: int) -> Instant:
    """A full minute that has passed."""
    minute = 60 * SECOND
    return (clock.now() // minute - minutes) * minute


async def expect_since(bb: Backburner, schedule: Schedule, nominal: Instant) -> None:
    """As if its next firing had been due then, and no keeper had been there."""
    scope = bb.session(schedule.record.session, owner=schedule.record.owner).scope
    await schedule.pause()
    assert await bb.store.resume_schedule(schedule.id, scope, next_at=nominal, due_at=nominal)
    await bb.tasks.see_to_keeper()
