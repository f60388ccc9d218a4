"""Serving one client over this process's standard streams, and staying for what goes on after."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

from backburner.app import Backburner
from backburner.mcp.wrap.proxy import Proxy
from backburner.mcp.wrap.server import Server
from backburner.mcp.wrap.streams import client_streams

_LOOK_EVERY_S = 2.0


async def serve(
    server: Server,
    home: str | os.PathLike[str] | None,
    session: str | None,
    budget_s: float | None,
    *,
    stays: Callable[[], None],
    life: int,
) -> None:
    """Until the client is gone and nothing goes on. ``life`` ends with the one it knows us by."""
    incoming, outgoing = _taken_from_others()
    async with Backburner.open(home) as backburner:
        proxy = Proxy(backburner, session, server, budget_s)
        try:
            async with client_streams(incoming, outgoing) as streams:
                await _first(proxy.serve(streams), _end_of(life))
            if await proxy.goes_on():
                stays()
                await _first(proxy.finished(), _gone(backburner.home.database))
        finally:
            await proxy.close()


def _taken_from_others() -> tuple[int, int]:
    """Standard input and output, for us alone: what is printed here is no message."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


async def _first(*ways: Coroutine[Any, Any, None]) -> None:
    """Until one of them ends; the others are cancelled."""
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error


async def _gone(path: str) -> None:
    """Until a file is removed: without a record nobody could ever read how it ended."""
    while await asyncio.to_thread(os.path.exists, path):  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(_LOOK_EVERY_S)


async def _end_of(descriptor: int) -> None:
    """Until the other end of a pipe is closed."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
