"""What every store promises of schedules; a part of `backburner.store.protocol.Store`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from backburner.model.clock import Instant
from backburner.model.schedule import Firing, NewSchedule, Schedule, ScheduleState, Turn

if TYPE_CHECKING:
    from backburner.store.protocol import Scope


class ScheduleStore(Protocol):
    """The durable record of schedules and their firings."""

    async def add_schedule(self, new: NewSchedule, *, limit: int) -> tuple[Schedule, bool]:
        """Write a new schedule. Answers it, and whether it is new.

        The same id with the same work, times and policies in the same session gives the one that
        is there; anything else under that id, or one that has ended, is a Conflict. More
        than ``limit`` that have not ended in its session, paused ones included: LimitReached.
        """
        ...

    async def schedule(self, schedule_id: str, scope: "Scope | None" = None) -> Schedule | None:
        """One schedule by its whole id."""
        ...

    async def find_schedules(self, prefix: str, scope: "Scope", limit: int) -> list[Schedule]:
        """Schedules whose id starts with ``prefix``."""
        ...

    async def schedules(
        self, scope: "Scope", *, states: Sequence[ScheduleState] = ()
    ) -> list[Schedule]:
        """Schedules, oldest first."""
        ...

    async def due_schedules(self, now: Instant, limit: int) -> list[Schedule]:
        """Active ones whose time has come, of everyone; those that have waited longest first."""
        ...

    async def next_firing(self) -> Instant | None:
        """When the next active schedule is due; None where none is active."""
        ...

    async def fire(self, schedule_id: str, expected: Instant, turn: Turn) -> list[Firing] | None:
        """Start what the turn says and move on to the next firing, all in one transaction.

        Only where the schedule is active and its next firing is still ``expected``: whoever comes
        second gets None. What may not start, because another task of it has not ended or because of
        the limit of its session, is noted as skipped. Without a next firing it is done.

        A single time, and one whose tasks queue, is not lost to that limit: it is put off for a
        while, says so, and gives None.
        """
        ...

    async def bring_forward(
        self,
        schedule_id: str,
        expected: Instant,
        *,
        next_at: Instant,
        due_at: Instant,
        anew: bool = False,
    ) -> bool:
        """Expect an earlier firing than ``expected``, since the clock was set back.

        False where something else is expected by now, or that firing was dealt with: unless
        that is to be done ``anew``, with all later ones. Then only a task that is there yet is not
        started once more.
        """
        ...

    async def firings(self, schedule_id: str, *, limit: int = 50) -> list[Firing]:
        """What became of the last firings, newest first."""
        ...

    async def pause_schedule(
        self, schedule_id: str, scope: "Scope", reason: str | None = None
    ) -> Schedule | None:
        """active → paused. None where it is not active."""
        ...

    async def resume_schedule(
        self, schedule_id: str, scope: "Scope", *, next_at: Instant, due_at: Instant
    ) -> Schedule | None:
        """paused → active. None where it is not paused."""
        ...

    async def cancel_schedule(self, schedule_id: str, scope: "Scope") -> Schedule | None:
        """active, paused → canceled. None where it has ended. Its tasks go on."""
        ...

    async def forget_schedules(self, before: Instant) -> int:
        """Remove those that ended before this time. Answers how many."""
        ...
