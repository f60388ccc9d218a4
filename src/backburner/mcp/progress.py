"""How far a call is, told to a client that asks for it, for as long as the client waits."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from backburner.model.task import Progress

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

_KEPT = 100
"""Of what a slow client has not taken the rest is dropped: the record has the latest."""

_LAST_S = 2.0
"""What a client gets for taking the last of it, before the answer."""


@asynccontextmanager
async def told_to(
    context: "ServerRequestContext[Any, Any]",
) -> AsyncGenerator[Callable[[Progress], None]]:
    """What is to be called with each progress. A client that has not asked for any gets none."""
    waiting: asyncio.Queue[Progress | None] = asyncio.Queue(_KEPT + 1)
    telling: asyncio.Task[None] | None = None
    answered = False

    def put(progress: Progress) -> None:
        nonlocal telling
        if answered:
            return  # it goes on as a task
        if waiting.qsize() < _KEPT:
            waiting.put_nowait(progress)
        if telling is None:
            telling = asyncio.create_task(_tell(context, waiting))

    try:
        yield put
        if telling is not None:
            waiting.put_nowait(None)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(telling), _LAST_S)
    finally:
        answered = True
        if telling is not None:
            telling.cancel()


async def _tell(
    context: "ServerRequestContext[Any, Any]", waiting: "asyncio.Queue[Progress | None]"
) -> None:
    last: float | None = None
    while (progress := await waiting.get()) is not None:
        if last is not None and progress.current <= last:
            continue  # the protocol wants it to grow
        last = progress.current
        await context.session.report_progress(progress.current, progress.total, progress.label)
