"""Sessions that stand still (D10): unresolved parked calls, and nothing at all for half an hour.

Looking is reading: nothing is changed, nobody is woken, and each standstill is logged once.
"""

import asyncio
import logging

from backburner.model import clock
from backburner.model.clock import Instant, format_duration, rfc3339
from backburner.model.errors import BackburnerError
from backburner.model.states import Kind
from backburner.model.task import Task
from backburner.store.protocol import Scope, Store

_log = logging.getLogger("backburner.standstill")

STANDSTILL_S = 30 * 60.0
_LOOK_EVERY_S = 60.0
_SHOWN = 10


async def watch_for_standstill(
    store: Store, *, after_s: float = STANDSTILL_S, every_s: float = _LOOK_EVERY_S
) -> None:
    """Log sessions that stand still, until cancelled."""
    told: dict[tuple[str, str], Instant] = {}
    while True:
        try:
            told = await look_for_standstill(store, told, after_s=after_s)
        except BackburnerError as error:
            _log.warning("sessions that stand still cannot be looked for: %s", error)
        await asyncio.sleep(every_s)


async def look_for_standstill(
    store: Store, told: dict[tuple[str, str], Instant], *, after_s: float = STANDSTILL_S
) -> dict[tuple[str, str], Instant]:
    """One look. ``told`` is what the look before answered: when each had last moved."""
    unresolved: dict[tuple[str, str], list[Task]] = {}
    for task in await store.active(Kind.TOOL):
        if task.parked_at is not None and not task.state.terminal:
            unresolved.setdefault((task.owner, task.session), []).append(task)
    still: dict[tuple[str, str], Instant] = {}
    now = store.now()
    for (owner, session), calls in unresolved.items():
        moved = await _last_moved(store, Scope(owner, session))
        if now - moved < after_s * clock.SECOND:
            continue
        still[owner, session] = moved
        if told.get((owner, session)) != moved:
            _tell(session, calls, now - moved)
    return still


async def _last_moved(store: Store, scope: Scope) -> Instant:
    """When anything last happened to a task of this session that has not ended, or just has."""
    moved = 0
    for task in await store.newest(scope, limit=200):
        moved = max(moved, task.finished_at or 0, task.created_at)
        if not task.state.terminal:
            moved = max(moved, await _last_event(store, task.id))
    return moved


async def _last_event(store: Store, task_id: str) -> Instant:
    at = number = 0
    while events := await store.events(task_id, after=number):
        at, number = events[-1].at, events[-1].number
    return at


def _tell(session: str, calls: list[Task], still: Instant) -> None:
    shown = ", ".join(
        f"{task.id} ({task.spec.get('tool')}, since {rfc3339(task.created_at)})"
        for task in calls[:_SHOWN]
    )
    more = f" and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""
    _log.warning(
        "the session %s made no progress for %s; unresolved calls: %s%s",
        session,
        format_duration(still / clock.SECOND),
        shown,
        more,
    )
