"""What brings queued work to workers of other machines: three verbs, which another engine can have.

The record decides what may start, and when; the engine only carries it there. Its idea of how a job
ended is never read as the state of a task: an engine accepts the end of an attempt that was long
replaced.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from backburner.store.record.transaction import Statements


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt of a task, as the engine knows it."""

    task: str
    attempt: int

    @property
    def key(self) -> str:
        """The engine has one job of this name at the most."""
        return f"{self.task}:{self.attempt}"


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Where a job is to go."""

    job: Job
    queue: str


class Engine(Protocol):
    """Every verb is part of the transaction that makes it necessary."""

    def dispatch(self, run: Statements, due: Sequence[Dispatch]) -> None:
        """A worker of this queue is to take each of them, as soon as it can."""
        ...

    def cancel(self, run: Statements, jobs: Sequence[Job]) -> None:
        """Nobody is to take them any more; what was taken is left to its worker."""
        ...

    def stalled(self, run: Statements, silent_s: float) -> list[Job]:
        """What workers have that were not heard of for so long."""
        ...
