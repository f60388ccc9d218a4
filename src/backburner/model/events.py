"""Events: the numbered history of a task, which the timeline and every stream are read from."""

from enum import StrEnum
from typing import Any

from backburner.model.clock import Instant
from backburner.model.values import value


class EventKind(StrEnum):
    """What happened."""

    CREATED = "created"
    STARTED = "started"
    PARKED = "parked"
    """A call outlived its time budget, and goes on by itself."""
    ADOPTED = "adopted"
    """A new keeper found it running and looks after it; the attempt is the same."""
    REQUEUED = "requeued"
    """The start was never made; the next attempt will be."""
    FAILED_TRY = "failed_try"
    """An attempt failed, and a further one will be made."""
    STOP_REQUESTED = "stop_requested"
    ENDING = "ending"
    """The worker begins to end it; the next thing that happens is a signal to its processes."""
    DETAIL = "detail"
    """What it says it is doing, or what was noticed about it."""
    PROGRESS = "progress"
    READY = "ready"
    """It is up, and not just started."""
    MATCH = "match"
    """Its output has what the caller looks for."""
    SILENT = "silent"
    """It has written nothing for as long as the caller allows."""
    ASKED = "asked"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    """Nobody waits for the answer to its question any more."""
    SENT = "sent"
    """Somebody has sent it a message."""
    MESSAGE = "message"
    """It has told its session something."""
    ARTIFACT = "artifact"
    RESULT = "result"
    LEFTOVERS = "leftovers"
    """Processes that it left behind: how many there are now."""
    FINISHED = "finished"


OVER = frozenset({EventKind.FINISHED, EventKind.REQUEUED, EventKind.FAILED_TRY})
"""With each of these an attempt is over, and its place free."""


@value
class Event:
    """One thing that happened to one task."""

    seq: int
    """Position among all events of the store: what a stream over everything resumes from."""
    task: str
    number: int
    """Position among the events of its task, from 1, without gaps."""
    at: Instant
    kind: EventKind
    data: dict[str, Any]
