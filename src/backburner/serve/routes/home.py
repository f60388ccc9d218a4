"""The home as a whole: who asks, what goes on, who carries it out, and whether all is well."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import JSONResponse, PlainTextResponse

from backburner.model.clock import rfc3339
from backburner.model.errors import BackburnerError
from backburner.model.task import Task
from backburner.runtime.carriers import Carrier, carriers
from backburner.runtime.election import keeper_is_missing
from backburner.runtime.lines import lines
from backburner.runtime.overview import overview as look
from backburner.serve.access import Administers, Looks
from backburner.serve.hub import sees
from backburner.serve.models.overview import (
    Health,
    LineList,
    Me,
    Overview,
    ToolList,
    WorkerList,
)
from backburner.serve.service import Service, service_of

_ANSWERS_S = 2.0
"""A record that takes longer is not there, for a probe."""

router = APIRouter(tags=["home"])


@router.get("/v1/me", response_model=Me)
async def me(who: Looks) -> dict[str, Any]:
    """Who the token of this request stands for."""
    return {"owner": who.token.owner, "role": who.token.role, "session": who.token.session}


@router.get("/v1/overview", response_model=Overview)
async def overview(
    who: Looks, hours: Annotated[float, Query(gt=0, le=24 * 31)] = 6
) -> dict[str, Any]:
    """The last hours at a glance."""
    seen = await look(who.service.backburner.store, who.scope, hours)
    return {
        "since": rfc3339(seen.since),
        "now": rfc3339(seen.now),
        "counts": seen.counts,
        "bars": [_bar(task) for task in seen.tasks],
        "more": seen.more,
        "failures": [_bar(task) for task in seen.failures],
        "waiting": [
            {
                "task": task.id,
                "session": task.session,
                "title": task.title,
                "question": question.id,
                "text": question.text,
                "approval": question.approval,
                "asked_at": rfc3339(question.asked_at),
            }
            for task, question in seen.waiting
        ],
    }


def _bar(task: Task) -> dict[str, Any]:
    return {
        "task": task.id,
        "session": task.session,
        "title": task.title,
        "kind": task.kind,
        "state": task.state,
        "error": None if task.error is None else task.error.kind,
        "created_at": rfc3339(task.created_at),
        "started_at": None if task.started_at is None else rfc3339(task.started_at),
        "finished_at": None if task.finished_at is None else rfc3339(task.finished_at),
        "parent": task.parent,
    }


@router.get("/v1/workers", response_model=WorkerList)
async def workers(who: Looks) -> dict[str, Any]:
    """The workers and applications that carry out tasks of the caller; all of them for an admin."""
    backburner = who.service.backburner
    items: list[dict[str, Any]] = []
    for carrier in await carriers(backburner.store, backburner.home):
        own = [task.id for task in carrier.tasks if sees(who.scope, task)]
        if own or who.is_admin:
            items.append(_worker(carrier, own, everything=who.is_admin))
    shared = backburner.home.shared
    there = not shared and not keeper_is_missing(backburner.home)
    return {"shared": shared, "keeper": there, "items": items}


def _worker(carrier: Carrier, tasks: list[str], *, everything: bool) -> dict[str, Any]:
    return {
        "id": carrier.id,
        "kind": carrier.kind,
        "machine": carrier.machine,
        "pid": carrier.pid,
        "alive": carrier.alive,
        "draining": carrier.draining,
        "queues": list(carrier.queues),
        "tools": list(carrier.tools),
        "agents": list(carrier.agents),
        "places": carrier.places,
        "running": carrier.running if everything else len(tasks),
        "heard_at": None if carrier.heard_at is None else rfc3339(carrier.heard_at),
        "tasks": tasks,
    }


@router.get("/v1/queues", response_model=LineList)
async def queues(who: Looks) -> dict[str, Any]:
    """The queues, and what waits and runs in them: all of it for an admin, else their own."""
    backburner = who.service.backburner
    found = await lines(backburner.store, backburner.home, None if who.is_admin else who.scope)
    return {
        "items": [
            {
                "name": line.queue.name or None,
                "width": line.queue.width or None,
                "paused": line.queue.paused,
                "waiting": line.queue.waiting,
                "running": line.queue.running,
                "workers": line.workers,
            }
            for line in found
        ]
    }


@router.get("/v1/tools", response_model=ToolList)
async def tools(who: Looks) -> dict[str, Any]:
    """What can be started in the background by name."""
    backburner = who.service.backburner
    await backburner.known_tools()
    found = [tool.document() for tool in backburner.startable()]
    return {"items": found, "agents": backburner.agents.names()}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(who: Administers) -> Response:
    """Numbers for Prometheus, of the whole home: for an admin of all sessions."""
    active = await who.service.backburner.store.active()
    return Response(who.service.measures.exposition(active), media_type="text/plain; version=0.0.4")


@router.get("/healthz", response_model=Health, responses={503: {"model": Health}})
async def health(request: Request) -> Response:
    """Live, and ready: the record can be read. 503 where it is not ready."""
    reason = await _problem(service_of(request))
    body = {"live": True, "ready": reason is None, "reason": reason}
    return JSONResponse(body, 200 if reason is None else 503)


@router.get("/healthz/live", response_model=Health)
async def live() -> Response:
    """Live: the process answers."""
    return JSONResponse({"live": True, "ready": True, "reason": None})


async def _problem(service: Service) -> str | None:
    """Why it cannot do its work, in words that say nothing of it."""
    if service.closing:
        return "the server is about to end"
    try:
        async with asyncio.timeout(_ANSWERS_S):
            await service.backburner.store.last_event()
    except TimeoutError:
        return "the record does not answer"
    except BackburnerError as error:
        return f"the record cannot be read: {error.code}"
    return None
