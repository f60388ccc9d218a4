"""Work that starts by the clock."""

import asyncio
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Response, status

from backburner.app.schedule import Schedule as Handle
from backburner.model.clock import rfc3339
from backburner.model.errors import NotFound, UsageError
from backburner.runtime.schedules.service import next_times
from backburner.serve.access import Caller, Looks, Schedules, SessionName
from backburner.serve.models.schedules import (
    ChangeSchedule,
    NewSchedule,
    Preview,
    PreviewRequest,
    Schedule,
    ScheduleList,
)
from backburner.serve.routes.tasks import Key, keyed

router = APIRouter(prefix="/v1", tags=["schedules"])

ScheduleId = Annotated[str, Path(min_length=1, max_length=64, description="Of the schedule.")]


def _when(cron: str | None, at: str | None) -> str:
    if (cron is None) == (at is None):
        raise UsageError("there is exactly one of cron and at", remedy="leave one of them out")
    return cron if cron is not None else at or ""


async def _found(who: Caller, session: str, schedule_id: str) -> Handle:
    scope = who.session(session).scope
    backburner = who.service.backburner
    record = await backburner.store.schedule(schedule_id, scope)
    if record is None:
        raise NotFound("no such schedule")
    return Handle(backburner, record, policy=who.policy)


@router.get("/schedules", response_model=ScheduleList)
async def all_schedules(who: Looks) -> dict[str, Any]:
    """The schedules of every session of the caller, oldest first."""
    backburner = who.service.backburner
    records = await backburner.store.schedules(who.scope)
    return {"items": [Handle(backburner, record).document() for record in records]}


@router.post("/schedules/preview", response_model=Preview)
async def preview(who: Looks, wish: PreviewRequest) -> dict[str, Any]:
    """When such a schedule would fire next. Nothing is made."""
    when = _when(wish.cron, wish.at)
    now = who.service.backburner.store.now()
    times = await asyncio.to_thread(next_times, when, wish.tz, wish.count, now)
    return {"times": [rfc3339(each) for each in times]}


@router.get("/sessions/{session}/schedules", response_model=ScheduleList)
async def schedules(who: Looks, session: SessionName) -> dict[str, Any]:
    """The schedules of a session, oldest first."""
    return {"items": [each.document() for each in await who.session(session).schedules()]}


@router.post(
    "/sessions/{session}/schedules",
    response_model=Schedule,
    status_code=status.HTTP_201_CREATED,
)
async def add(
    who: Schedules, session: SessionName, wish: NewSchedule, response: Response, key: Key = None
) -> dict[str, Any]:
    """Start work by the clock from now on."""
    here = who.session(session)
    made = await here.schedule(
        _when(wish.cron, wish.at),
        wish.work,
        tz=wish.tz,
        title=wish.title,
        missed=wish.missed,
        overlap=wish.overlap,
        jitter=wish.jitter,
        max_runtime=wish.max_runtime_s,
        signal_on_completion=wish.signal_on_completion,
        priority=wish.priority,
        id=keyed(key, here.scope.owner, here.name, "schedule"),
    )
    # A header is a line of ASCII, and a name may be anything.
    response.headers["Location"] = f"/v1/sessions/{quote(session, safe='')}/schedules/{made.id}"
    return made.document()


@router.get("/sessions/{session}/schedules/{id}", response_model=Schedule)
async def one(who: Looks, session: SessionName, id: ScheduleId) -> dict[str, Any]:
    """One schedule."""
    return (await _found(who, session, id)).document()


@router.patch("/sessions/{session}/schedules/{id}", response_model=Schedule)
async def change(
    who: Schedules, session: SessionName, id: ScheduleId, wish: ChangeSchedule
) -> dict[str, Any]:
    """Pause it, or go on with what comes."""
    found = await _found(who, session, id)
    changed = await (found.resume() if wish.enabled else found.pause())
    return changed.document()


@router.delete("/sessions/{session}/schedules/{id}", response_model=Schedule)
async def remove(who: Schedules, session: SessionName, id: ScheduleId) -> dict[str, Any]:
    """End it. The tasks that it has started go on."""
    return (await (await _found(who, session, id)).cancel()).document()
