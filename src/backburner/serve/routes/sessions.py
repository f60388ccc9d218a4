"""Sessions, what they are told, and the calls of theirs that outlived their budget."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from backburner.model.clock import rfc3339
from backburner.model.document import signal_document
from backburner.model.signals import SignalState
from backburner.serve import pages
from backburner.serve.access import Caller, Looks, SessionName, Stops, Takes, TaskId
from backburner.serve.models.base import NAME_MAX_CHARS
from backburner.serve.models.overview import SessionList
from backburner.serve.models.parked import BackgroundToolList, BackgroundToolStatus
from backburner.serve.models.signals import Acknowledge, Acknowledged, SignalPage
from backburner.store.protocol import Scope
from backburner.tools.dialects.check_background_tool import ParkedCalls

router = APIRouter(prefix="/v1", tags=["sessions"])

_RECENT = 5000
"""Tasks whose sessions are listed; those of tasks that have not ended are listed all."""

States = Annotated[
    list[SignalState], Query(alias="state", max_length=5, description="Only in these states.")
]
Channel = Annotated[
    str | None,
    Query(
        max_length=NAME_MAX_CHARS, description="`inbox`, or a channel by name; all unless given."
    ),
]


@router.get("/sessions", response_model=SessionList)
async def sessions(who: Looks) -> dict[str, Any]:
    """The sessions of the caller, with what their tasks are at present."""
    found = await who.service.backburner.store.sessions(who.scope, recent=_RECENT)
    return {
        "items": [
            {
                "name": each.name,
                "owner": each.owner,
                "parent": each.parent,
                "counts": each.counts,
                "last_created_at": rfc3339(each.last_created_at),
            }
            for each in found
        ]
    }


# Being told


@router.get("/signals", response_model=SignalPage)
async def all_signals(
    *,
    who: Looks,
    state: States = [],  # noqa: B006 - FastAPI makes a new one for each request
    channel: Channel = None,
    cursor: pages.Cursor = None,
    limit: pages.Limit = 50,
) -> dict[str, Any]:
    """What the sessions of the caller were and are to be told, newest first."""
    found = await who.service.backburner.store.newest_signals(
        who.scope, states=state, channel=channel, before=pages.number(cursor), limit=limit
    )
    last = found[-1].seq if len(found) == limit else None
    return {
        "items": [signal_document(each, who.service.backburner.home) for each in found],
        "next": pages.cursor(last),
    }


@router.get("/sessions/{session}/signals", response_model=SignalPage)
async def signals(
    *,
    who: Looks,
    session: SessionName,
    state: States = [],  # noqa: B006 - FastAPI makes a new one for each request
    channel: Channel = None,
    cursor: pages.Cursor = None,
    limit: pages.Limit = 50,
) -> dict[str, Any]:
    """What a session was and is to be told, oldest first. Nothing is claimed by looking."""
    found = await who.session(session).told(
        states=state, channel=channel, after=pages.number(cursor) or 0, limit=limit
    )
    last = found[-1].record.seq if len(found) == limit else None
    home = who.service.backburner.home
    return {
        "items": [signal_document(each.record, home) for each in found],
        "next": pages.cursor(last),
    }


@router.post("/sessions/{session}/signals/ack", response_model=Acknowledged)
async def acknowledge(who: Takes, session: SessionName, these: Acknowledge) -> dict[str, Any]:
    """These were dealt with, and are not told again. A key that is none changes nothing."""
    scope = who.session(session).scope
    inbox = who.service.backburner.inbox
    return {"acknowledged": await inbox.acknowledge(these.keys, scope)}


# Parked calls


@router.get("/sessions/{session}/background-tools", response_model=BackgroundToolList)
async def parked_calls(who: Looks, session: SessionName) -> dict[str, Any]:
    """Every call of the session that outlived its budget, newest first."""
    answer = await ParkedCalls(who.session(session)).check({"list": True})
    return dict(answer.data)


@router.get("/sessions/{session}/background-tools/{id}", response_model=BackgroundToolStatus)
async def parked_call(
    who: Looks,
    session: SessionName,
    id: TaskId,
    wait_seconds: Annotated[float, Query(ge=0, le=60, description="Wait so long for its end.")] = 0,
) -> dict[str, Any]:
    """How one of them stands."""
    return await _checked(who, session, {"background_id": id, "wait_seconds": wait_seconds})


@router.post(
    "/sessions/{session}/background-tools/{id}/cancel", response_model=BackgroundToolStatus
)
async def cancel_parked_call(who: Stops, session: SessionName, id: TaskId) -> dict[str, Any]:
    """End one of them; one that has just ended gives its real result."""
    return await _checked(who, session, {"background_id": id, "cancel": True})


async def _checked(who: Caller, session: str, given: dict[str, Any]) -> dict[str, Any]:
    here = who.session(session)
    task_id: str = given["background_id"]
    # By its whole id: what a part of one fits would say something of others.
    await who.service.backburner.tasks.get(task_id, Scope(here.scope.owner, here.name))
    return dict((await ParkedCalls(here).check(given)).data)
