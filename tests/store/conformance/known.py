"""The model that the stores are held against: what a task and its signal are to be."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.signals import SignalState
from backburner.model.states import State
from backburner.model.task import EndedFor
from backburner.store.protocol import Scope


@dataclass
class Telling:
    """The model of a signal."""

    state: SignalState = SignalState.PENDING
    holder: str | None = None
    tries: int = 0
    told: int = 0

    @property
    def open(self) -> bool:
        return self.state not in (SignalState.DELIVERED, SignalState.DROPPED)


@dataclass
class Known:
    """The model of a task."""

    scope: Scope
    spec: dict[str, Any]
    state: State = State.QUEUED
    attempt: int = 1
    stop: float | None = None
    leftovers: int = 0
    ending: Ending | None = None
    ended_for: EndedFor | None = None
    detail: str | None = None
    events: list[EventKind] = field(default_factory=lambda: [EventKind.CREATED])
    telling: Telling | None = None

    def end(self, ending: Ending, leftovers: int = 0) -> None:
        assert self.telling is None, "told once"
        self.state, self.ending, self.leftovers = ending.state, ending, leftovers
        self.events.append(EventKind.FINISHED)
        self.telling = Telling()


def is_queued(known: Known) -> bool:
    return known.state is State.QUEUED


def is_running(known: Known) -> bool:
    return known.state is State.RUNNING


def is_lingering(known: Known) -> bool:
    return known.leftovers > 0


def is_told(known: Known) -> bool:
    return known.telling is not None


def has(fits: Callable[[Known], bool]) -> Callable[[Any], bool]:
    """For a rule that makes sense only where there is such a task."""
    return lambda self: any(fits(known) for known in self.known.values())
