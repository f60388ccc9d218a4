"""Reading schedules: the order of their columns, and the queries that only read."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backburner.model.clock import Instant
from backburner.model.schedule import Firing, Missed, Overlap, Schedule, ScheduleState
from backburner.model.states import Kind
from backburner.store.record.transaction import Rows

if TYPE_CHECKING:
    from backburner.store.protocol import Scope

SCHEDULE = """seq, id, owner, session, kind, title, spec, zone, state, created_at, next_at, due_at,
    cron, at, missed, overlap, jitter_s, max_runtime_s, hand_over, task_limit, ended_at, last_at,
    fired, last_task, detail, priority"""
"""For a SELECT and for a RETURNING, in the order of the fields of a Schedule."""

_KIND, _SPEC, _STATE, _MISSED, _OVERLAP = 4, 6, 8, 14, 15


def to_schedule(row: tuple[Any, ...]) -> Schedule:
    """A row of SCHEDULE as a schedule."""
    values = list(row)
    values[_KIND] = Kind(row[_KIND])
    values[_SPEC] = json.loads(row[_SPEC])
    values[_STATE] = ScheduleState(row[_STATE])
    values[_MISSED] = Missed(row[_MISSED])
    values[_OVERLAP] = Overlap(row[_OVERLAP])
    return Schedule(*values)


class ScheduleReader(Rows):
    """See `backburner.store.schedules.ScheduleStore` for what each method promises."""

    def schedule(self, schedule_id: str, scope: "Scope | None" = None) -> Schedule | None:
        """See ScheduleStore.schedule."""
        for row in self._rows("schedule_get", id=schedule_id):
            found = to_schedule(row)
            if scope is None or (
                found.owner == scope.owner and scope.session in (None, found.session)
            ):
                return found
        return None

    def find_schedules(self, prefix: str, scope: "Scope", limit: int) -> list[Schedule]:
        """See ScheduleStore.find_schedules."""
        rows = self._rows(
            "schedule_find", prefix=prefix, owner=scope.owner, session=scope.session, limit=limit
        )
        return [to_schedule(row) for row in rows]

    def schedules(self, scope: "Scope", states: Sequence[ScheduleState] = ()) -> list[Schedule]:
        """See ScheduleStore.schedules."""
        rows = self._rows(
            "schedules",
            owner=scope.owner,
            session=scope.session,
            states=json.dumps([state.value for state in states]),
        )
        return [to_schedule(row) for row in rows]

    def due_schedules(self, now: Instant, limit: int) -> list[Schedule]:
        """See ScheduleStore.due_schedules."""
        return [to_schedule(row) for row in self._rows("schedules_due", now=now, limit=limit)]

    def next_firing(self) -> Instant | None:
        """See ScheduleStore.next_firing."""
        return self._rows("schedule_next_due")[0][0]

    def firings(self, schedule_id: str, limit: int) -> list[Firing]:
        """See ScheduleStore.firings."""
        rows = self._rows("firings_of_schedule", id=schedule_id, limit=limit)
        return [Firing(*row) for row in rows]
