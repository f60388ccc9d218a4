"""Server-sent events: what a reader missed, from the rows, then what happens, as it happens.

The id of each event is its place in the record, so a reader that comes back with `Last-Event-ID`
misses nothing and hears nothing twice, also after a restart of the server.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from functools import partial

from fastapi.sse import EventSourceResponse, format_sse_event
from starlette.types import Receive, Scope, Send

from backburner.model.errors import StoreAway
from backburner.model.events import EventKind
from backburner.runtime.outages import endured
from backburner.serve.growth import Growth
from backburner.serve.hub import Hub, Reader, encode, sees
from backburner.serve.settings import Load
from backburner.store.protocol import Store

_PAGE = 500
_RETRY_MS = 1000
"""How soon a browser comes back."""

_ALIVE = b": alive\n\n"

_WHY = {
    "slow": "too far behind: come back with Last-Event-ID, and what was missed is read again",
    "shutdown": "the server ends: come back in a moment",
    "revoked": "the token of this stream opens nothing any more",
    "reset": "too much has happened since: look at everything anew, then go on from here",
}


def _note(kind: str, *, event_id: int | None = None) -> bytes:
    """Something about the stream itself, which is no event of a task."""
    return format_sse_event(
        data_str=f'{{"reason": "{kind}", "text": "{_WHY[kind]}"}}',
        event="stream",
        id=None if event_id is None else str(event_id),
    )


async def missed_of_all(
    store: Store, hub: Hub, reader: Reader, after: int, load: Load
) -> AsyncGenerator[bytes]:
    """What happened between an event and the moment at which the reader joined."""
    if reader.position - after > load.replayed:
        yield _note("reset", event_id=reader.position)
        return
    while after < reader.position:
        events = await endured(partial(store.events_since, after, limit=_PAGE))
        if not events:
            return
        after = events[-1].seq
        known = [each for each in events if each.seq <= reader.position]
        found = await endured(partial(hub.encoded, known))
        if piece := b"".join(data for _, task, data in found if sees(reader.scope, task)):
            yield piece


async def missed_of_task(store: Store, reader: Reader, after: int) -> AsyncGenerator[bytes]:
    """The same for one task."""
    assert reader.task is not None
    number = 0
    task_id, scope = reader.task, reader.scope
    while events := await endured(
        partial(store.events, task_id, after=number, limit=_PAGE, scope=scope)
    ):
        number = events[-1].number
        task = await endured(partial(store.get, task_id, scope))
        if task is None:
            return
        known = [event for event in events if event.seq <= reader.position]
        if any(event.kind is EventKind.FINISHED for event in known):
            reader.finished = True
        yield b"".join(encode(event, task) for event in known if after < event.seq)


class EventStream(EventSourceResponse):
    """The answer to one reader; it ends with the reader, the server, or the reader's token."""

    def __init__(
        self,
        hub: Hub,
        reader: Reader,
        missed: AsyncIterator[bytes],
        *,
        load: Load,
        still_holds: Callable[[], Awaitable[bool]],
        is_over: Callable[[], Awaitable[bool]],
    ) -> None:
        super().__init__(missed, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._hub = hub
        self._reader = reader
        self._missed = missed
        self._load = load
        self._still_holds = still_holds
        self._is_over = is_over
        self._growth: Growth | None = None

    def tells_of(self, growth: Growth) -> None:
        """Tell also when the output of the task grows."""
        self._growth = growth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - of ASGI
        """Send until it is over."""
        reader = self._reader
        gone = asyncio.create_task(_until_gone(receive, reader))
        if self._growth is not None:
            self._growth.join(reader)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for piece in self._pieces():
                if reader.ended == "gone":
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            self._hub.leave(reader)
            if self._growth is not None:
                self._growth.leave(reader)

    async def _pieces(self) -> AsyncIterator[bytes]:
        reader = self._reader
        yield f"retry: {_RETRY_MS}\n\n".encode()
        async for piece in self._missed:
            if piece:
                yield piece
        while True:
            if piece := reader.take():
                yield piece
            if reader.ended is not None:
                if reader.ended in _WHY:
                    yield _note(reader.ended)
                return
            try:
                async with asyncio.timeout(self._load.keep_alive_s):
                    if await endured(self._is_over) and not reader.waiting:
                        return
                    await reader.bell.wait()
            except TimeoutError:
                with contextlib.suppress(StoreAway):  # and so nothing can be told either
                    if not await self._still_holds():
                        reader.end("revoked")
                yield _ALIVE


async def _until_gone(receive: Receive, reader: Reader) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    reader.end("gone")
