"""What every store promises to those who look around; a part of `backburner.store.protocol.Store`.

Every answer is bounded, however many tasks there are.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from backburner.model.clock import Instant
from backburner.model.session import SessionSummary
from backburner.model.signals import Signal, SignalState
from backburner.model.task import Task

if TYPE_CHECKING:
    from backburner.store.protocol import Scope


class Browsing(Protocol):
    """Reading across tasks and sessions, for people."""

    async def children(self, task_id: str, scope: "Scope", *, limit: int = 200) -> list[Task]:
        """What a task has started, and what is in the session of its name, newest first."""
        ...

    async def ended_since(self, at: Instant, scope: "Scope", *, limit: int) -> list[Task]:
        """Tasks that have ended since this time, the last one first; without their results."""
        ...

    async def newest_signals(
        self,
        scope: "Scope",
        *,
        states: Sequence[SignalState] = (),
        channel: str | None = None,
        before: int | None = None,
        limit: int,
    ) -> list[Signal]:
        """Signals of one channel, or of all, newest first; ``before`` is where to go on."""
        ...

    async def sessions(self, scope: "Scope", *, recent: int) -> list[SessionSummary]:
        """Sessions by name, with how many tasks they have in each state: all that have not ended,

        and those among the ``recent`` newest tasks.
        """
        ...
