"""What the machine knows of a task: what was done to it, and so how it may have ended."""

from dataclasses import dataclass, field
from typing import Any

from backburner import State, Task
from tests.runtime.machine.behaviours import (
    CANCELED,
    KILLED,
    ORPHANED,
    SPAWN,
    Behaviour,
    End,
)

ON_TERMINAL = "on_terminal"


@dataclass
class Known:
    """The model of one task."""

    id: str
    token: str
    """Names the files that it leaves its marks in."""
    behaviour: Behaviour
    session: str
    hosts: set[str]
    """Who may carry it out at first: the keeper, this process, or applications by their names."""
    sure: bool = True
    """The start has returned its id: it must not be lost."""
    named: bool = True
    """Its id was chosen by who started it: the same start again is the same task."""
    wake: str = ON_TERMINAL
    provided: bool = False
    """It has got what it needs to end by itself, or may have."""
    told: bool = False
    """The message that it waits for was taken for it: not so where it was sent before its start."""
    stop_asked: bool = False
    """Somebody has asked for its end, or may have."""
    host_lost: bool = False
    """The application that carried it out has died or was closed, while it may have run."""
    lost_unasked: bool = False
    """That was before the record was seen to have a request for its end: it may have been orphaned
    by then, in its files alone, and whoever finds them puts that on record."""
    stop_on_record: bool = False
    """The record was seen to have such a request."""
    killed: bool = False
    """Its first process was killed from outside, or may have been."""
    stopped_as: set[State] = field(default_factory=set[State])
    """What stops have said that it ended as."""
    attempt: int = 1
    final: tuple[Any, ...] | None = None
    """How it was when it was first seen to have ended."""

    @property
    def open(self) -> bool:
        """Whether it has not been seen to have ended."""
        return self.final is None

    def lose_host(self) -> None:
        """Who carried it out is gone, and it with them, if it ran."""
        self.host_lost = True
        self.lost_unasked |= not self.stop_on_record

    def seen(self, task: Task) -> None:
        """Compare with what was seen before: nothing goes back, and an end is final (E10)."""
        record = task.record
        assert record.attempt >= self.attempt, (self, record)
        self.attempt = record.attempt
        self.stop_on_record |= record.stop is not None
        end = (record.state, record.error, record.exit_code, record.result, record.finished_at)
        if self.final is not None:
            assert end == self.final, (self, record)
        elif record.state.terminal:
            self.final = end

    def ends(self, task: Task, *, sees_deaths: bool) -> set[End]:
        """How it may have ended; ``sees_deaths`` is of its ground."""
        ends: set[End] = set()
        if self.behaviour.end and (self.provided or self.behaviour.need is None):
            ends.add(self.behaviour.end)
        if self.stop_asked:
            ends.add(CANCELED)
        if self.killed:  # before or after it has run a line
            ends |= {KILLED, SPAWN}
        exhausted = task.record.attempt == self.behaviour.most_runs
        asked_to_stop = task.record.stop is not None
        if asked_to_stop:
            may_be_orphaned = not sees_deaths or (exhausted and self.lost_unasked)
        else:
            may_be_orphaned = exhausted
        if self.host_lost and may_be_orphaned:
            ends.add(ORPHANED)
        return ends
