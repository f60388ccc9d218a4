"""Events as they happen."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from backburner.serve.access import Caller, Looks, TaskId
from backburner.serve.models.events import StreamedEvent
from backburner.serve.stream import EventStream, missed_of_all, missed_of_task

router = APIRouter(prefix="/v1", tags=["events"])

_PLACE = r"^[0-9]{1,18}$"
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", pattern=_PLACE, description="Go on after this event."),
]
After = Annotated[
    str | None,
    Query(pattern=_PLACE, description="The same, for those who cannot send a header."),
]

_ITEM = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string"},
        "retry": {"type": "integer"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "description": "A StreamedEvent; of `event: stream`, an object of `reason` and `text`.",
        },
    },
}
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `id` is the place of the event, `event` its kind,"
        " `data` a StreamedEvent. `event: stream` tells of the stream itself: `slow`, `shutdown`,"
        " `revoked`, or `reset`, after which everything has to be looked at anew.",
        "content": {"text/event-stream": {"itemSchema": _ITEM}},
    },
}
_ENDING: dict[int | str, dict[str, Any]] = {
    **_STREAM,
    204: {"description": "It has ended, and nothing has happened since that event."},
}


@router.get("/events", response_class=Response, responses=_STREAM)
async def all_events(who: Looks, last: LastEventId = None, after: After = None) -> Response:
    """Everything that the caller may see, from now on or after an event."""
    service = who.service
    store, load = service.backburner.store, service.binding.load
    reader = service.hub.join(who.scope, None, who.token.id)
    place = last or after
    begin = reader.position if place is None else int(place)
    missed = missed_of_all(store, service.hub, reader, begin, load)

    async def never() -> bool:
        return False

    return EventStream(
        service.hub, reader, missed, load=load, still_holds=_holds(who), is_over=never
    )


@router.get("/tasks/{id}/events", response_class=Response, responses=_ENDING)
async def events_of_task(
    who: Looks,
    id: TaskId,
    last: LastEventId = None,
    after: After = None,
    output: Annotated[
        bool,
        Query(
            description="Tell also that its output has grown: `event: output` without an id, its"
            ' data `{"cursor": …, "total": …}`. Where a reader is slow, only the latest.'
        ),
    ] = False,
) -> Response:
    """What happens to one task, from its beginning or after an event, up to its end."""
    service = who.service
    store, load = service.backburner.store, service.binding.load
    await who.task(id)
    place = int(last or after or 0)
    if place and await _has_ended(who, id) and not await _is_news(who, id, place):
        return Response(status_code=204)  # which tells a browser not to come back
    reader = service.hub.join(who.scope, id, who.token.id)
    missed = missed_of_task(store, reader, place)

    async def is_over() -> bool:
        return reader.finished and await _has_ended(who, id)

    stream = EventStream(
        service.hub, reader, missed, load=load, still_holds=_holds(who), is_over=is_over
    )
    if output:
        stream.tells_of(service.growth)
    return stream


def _holds(who: Caller) -> Any:
    async def still() -> bool:
        return await who.service.tokens.still_holds(who.token.id)

    return still


async def _has_ended(who: Caller, task_id: str) -> bool:
    task = await who.service.backburner.store.get(task_id, who.scope)
    return task is None or (task.state.terminal and not task.leftovers)


async def _is_news(who: Caller, task_id: str, place: int) -> bool:
    number = 0
    store = who.service.backburner.store
    while events := await store.events(task_id, after=number, scope=who.scope):
        if events[-1].seq > place:
            return True
        number = events[-1].number
    return False


MODELS = (StreamedEvent,)
"""What is only in streams, and so not in the answer of any route."""
