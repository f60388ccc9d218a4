"""Work that starts by the clock: the schedule, its policies, and what became of its firings.

A *nominal* time is the one that the calendar gives. A firing is known by it: it is the same whoever
looks at the clock, and however late.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from backburner.model.clock import Instant, rfc3339
from backburner.model.ending import Ending
from backburner.model.states import Kind
from backburner.model.task import NewTask
from backburner.model.values import value

LATE_S = 60.0
"""A firing that is later than this was missed: cron counts in minutes, and a keeper that was killed
is back within seconds."""

MADE_UP_MAX = 100
"""Missed firings that are made up for at once, and firings that wait for each other."""

FIRINGS_KEPT = 200
"""What became of the last firings of a schedule; the tasks themselves are kept as all are."""

PUT_OFF_S = 30.0
"""How soon a firing for which its session had no room is tried again."""
LONGEST_JITTER_S = 86400.0
EXPRESSION_MAX_CHARS = 200
"""The longest sensible expression lists every minute of an hour: 170 characters."""


class ScheduleState(StrEnum):
    """Where a schedule is in its life."""

    ACTIVE = "active"
    """It has a next firing."""
    PAUSED = "paused"
    """It can go on; what would have fired meanwhile was not missed."""
    DONE = "done"
    """There is nothing to fire any more."""
    CANCELED = "canceled"
    """Somebody ended it."""

    @property
    def ended(self) -> bool:
        """Whether it will never fire again."""
        return self in (ScheduleState.DONE, ScheduleState.CANCELED)


class Missed(StrEnum):
    """What happens to firings for which no keeper was there."""

    SKIP = "skip"
    """None is made up for."""
    ONCE = "once"
    """One, for all that were missed."""
    ALL = "all"
    """Each, up to `MADE_UP_MAX`, one after the other unless they may overlap."""


class Overlap(StrEnum):
    """What happens to a firing while a task of an earlier one has not ended."""

    SKIP = "skip"
    """It is left out, and its history says so."""
    QUEUE = "queue"
    """Its task starts when the other one has ended, however that ended."""
    PARALLEL = "parallel"
    """Its task starts at once."""


@value
class NewSchedule:
    """What is written when a schedule is made."""

    id: str
    owner: str
    session: str
    kind: Kind
    title: str
    spec: dict[str, Any]
    """Of the tasks that it starts."""
    zone: str
    next_at: Instant
    due_at: Instant
    """When the next firing is made: its nominal time and its jitter."""
    cron: str | None = None
    at: Instant | None = None
    missed: Missed = Missed.ONCE
    overlap: Overlap = Overlap.SKIP
    jitter_s: float = 0.0
    max_runtime_s: float | None = None
    hand_over: str | None = None
    """What its tasks are started with, where the keeper can start them."""
    task_limit: int = 0
    """So many active tasks of this kind its session may have."""
    priority: int = 0
    """Of its tasks."""


@value
class Schedule:
    """One row of the record."""

    seq: int
    id: str
    owner: str
    session: str
    kind: Kind
    title: str
    spec: dict[str, Any]
    zone: str
    state: ScheduleState
    created_at: Instant
    next_at: Instant | None = None
    due_at: Instant | None = None
    cron: str | None = None
    at: Instant | None = None
    missed: Missed = Missed.ONCE
    overlap: Overlap = Overlap.SKIP
    jitter_s: float = 0.0
    max_runtime_s: float | None = None
    hand_over: str | None = None
    task_limit: int = 0
    ended_at: Instant | None = None
    last_at: Instant | None = None
    """The nominal time up to which everything is dealt with."""
    fired: int = 0
    last_task: str | None = None
    detail: str | None = None
    """Why it is paused, where that was not a person's wish; or why its firing was put off."""
    priority: int = 0
    """Of its tasks."""


@value
class Firing:
    """What became of one nominal time of a schedule."""

    schedule: str
    nominal_at: Instant
    at: Instant
    """When it was dealt with."""
    task: str | None = None
    """The task that it started; None where it was skipped."""
    reason: str | None = None
    """Why it was skipped, or what else there is to say."""

    @property
    def skipped(self) -> bool:
        """Whether it started nothing."""
        return self.task is None

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schedule_id": self.schedule,
            "nominal_at": rfc3339(self.nominal_at),
            "at": rfc3339(self.at),
            "task_id": self.task,
            "skipped": self.skipped,
            "reason": self.reason,
        }


@value
class Start:
    """A task that a firing is to start."""

    nominal_at: Instant
    task: NewTask
    ending: Ending | None = None
    """Where it cannot even be tried."""
    detail: str | None = None
    """What the task itself waits for."""


@value
class Turn:
    """What a look at the clock has decided for one schedule: all of it is one transaction."""

    starts: tuple[Start, ...] = ()
    next_at: Instant | None = None
    due_at: Instant | None = None
    made_up: bool = False
    """The starts were missed ones: none of them is left out because another one runs."""
    passed_over: str | None = None
    """Why nominal times before the next one start nothing."""


def schedule_document(
    schedule: Schedule, *, created: bool, next_task: str | None
) -> dict[str, Any]:
    """A schedule as JSON. ``next_task`` is the id that the task of its next firing will have."""
    spec: Mapping[str, Any] = schedule.spec
    active = schedule.state is ScheduleState.ACTIVE
    return {
        "created": created,
        "status": "scheduled" if active else schedule.state.value,
        "schedule_id": schedule.id,
        "schedule_type": "once" if schedule.cron is None else "cron",
        "cron_expression": schedule.cron,
        "scheduled_at": None if schedule.at is None else rfc3339(schedule.at),
        "timezone": schedule.zone,
        "next_trigger_at": None if schedule.due_at is None else rfc3339(schedule.due_at),
        "enabled": active,
        "task_id": next_task,
        "title": schedule.title,
        "tool": spec.get("tool"),
        "signal_on_completion": spec.get("wake") != "silent",
        "session": schedule.session,
        "owner": schedule.owner,
        "kind": schedule.kind.value,
        "missed": schedule.missed.value,
        "overlap": schedule.overlap.value,
        "jitter": schedule.jitter_s,
        "max_runtime_s": schedule.max_runtime_s,
        "priority": schedule.priority,
        "fired": schedule.fired,
        "last_task": schedule.last_task,
        "detail": schedule.detail,
        "created_at": rfc3339(schedule.created_at),
    }
