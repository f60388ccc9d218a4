"""What brings queued work to workers of other machines: three verbs, which another engine can have.

The record decides what may start, and when; the engine only carries it there. Its idea of how a job
ended is never read as the state of a task: an engine accepts the end of an attempt that was long
replaced.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

from backburner.model.states import Kind
from backburner.model.values import value
from backburner.store.record.rows import to_json
from backburner.store.record.transaction import Row, Statements

_LONGEST = 32
"""Bytes of a name in a route: an engine may wake its workers through channels, whose names are
short."""


@value
class Job:
    """One attempt of a task, as the engine knows it."""

    task: str
    attempt: int

    @property
    def key(self) -> str:
        """The engine has one job of this name at the most."""
        return f"{self.task}:{self.attempt}"


@value
class Silence:
    """A job whose worker was not heard of for a while."""

    job: Job
    silent_s: float
    """After so long it is dead."""
    dead: bool
    """It was that long; else two thirds of it."""
    node: str | None
    """With which it is, if with any."""
    begun: bool
    """Whether it runs there; else it waits, and goes to another one under the same attempt."""


def route_of_queue(name: str) -> str:
    """Where tasks of a queue go; the database says the same of each task (`task.route`)."""
    return _short(name)


def route_of_work(kind: Kind, name: str) -> str:
    """Where a tool or an agent is asked for, by everybody who has it."""
    return f"{kind}:{_short(to_json(name)[1:-1])}"


def route_of_node(node: str, route: str) -> str:
    """Where one node is sent what others on a route could not carry out.

    For each route apart: whether there is room is asked of one queue for all that is on a route.
    """
    return f"node:{_hashed(f'{node}:{route}')}"


def _short(name: str) -> str:
    if len(name.encode()) <= _LONGEST:
        return name
    return _hashed(name)


def _hashed(name: str) -> str:
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()


class Asked(Protocol):
    """Whoever can be asked for the rows of a statement."""

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Every row of a statement."""
        ...


class Engine(Protocol):
    """Every verb that changes something is part of the transaction that makes it necessary."""

    def dispatch(self, run: Statements, **turn: int | str) -> None:
        """A worker of its route is to take each task that may start now, as soon as it can.

        Which ones the function `admit` of the database says, of this ``turn``: so the engine is
        given them where they are, and nobody waits for a list of them.
        """
        ...

    def cancel(self, run: Statements, jobs: Sequence[Job]) -> None:
        """Nobody is to take them any more; what was taken is left to its worker."""
        ...

    def silent(self, read: Asked, silent_s: float, contact_s: float) -> list[Silence]:
        """What workers have that are dead, or may be soon: not heard of for as long as each of them

        has said, or for ``silent_s`` where it has said nothing. Whoever asks has been in touch with
        the database for ``contact_s``, and hears of nobody who has longer than that.
        """
        ...
