"""Events: the numbered history of a task, which the timeline and every stream are read from."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from backburner.model.clock import Instant


class EventKind(StrEnum):
    """What happened."""

    CREATED = "created"
    STARTED = "started"
    ADOPTED = "adopted"
    """A new keeper found it running and looks after it; the attempt is the same."""
    REQUEUED = "requeued"
    """A further attempt will be made."""
    STOP_REQUESTED = "stop_requested"
    ENDING = "ending"
    """The worker begins to end it; the next thing that happens is a signal to its processes."""
    DETAIL = "detail"
    """What it says it is doing, or what was noticed about it."""
    LEFTOVERS = "leftovers"
    """Processes that it left behind: how many there are now."""
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
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
