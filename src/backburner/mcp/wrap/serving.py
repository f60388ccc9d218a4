"""Serving clients, and staying for what goes on after they have gone."""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from mcp.server.connection import Connection, NotifyOnlyOutbound
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)

from backburner.app import Backburner
from backburner.mcp.transports import over_http
from backburner.mcp.wrap.meta import meta_of
from backburner.mcp.wrap.server import Server
from backburner.mcp.wrap.streams import Streams, client_streams
from backburner.mcp.wrap.wrapping import Wrapping
from backburner.model.values import value
from backburner.runtime.tokens import TokenService

if TYPE_CHECKING:
    from backburner.mcp.reception import Reception

_LOOK_EVERY_S = 2.0

Dispatch = DispatchContext[TransportContext]


@value
class Door:
    """Where clients come in over HTTP."""

    listening: socket.socket
    announce: Callable[[str], None]
    tokens: bool
    """Whether who comes in has to show one."""


async def serve(
    server: Server,
    home: str | os.PathLike[str] | None,
    session: str | None,
    budget_s: float | None,
    *,
    door: Door | None,
    stays: Callable[[], None],
    life: int,
) -> None:
    """Until the clients are gone and nothing goes on. ``life`` ends with the one they know us by.

    Without a ``door`` there is one client, on standard input and output.
    """
    pipes = None if door is not None else _taken_from_others()
    async with Backburner.open(home) as backburner:
        wrapping = Wrapping(backburner, server, session=session, budget_s=budget_s)
        front = wrapping.server()
        try:
            if door is not None:
                tokens = TokenService(backburner.store, backburner.home) if door.tokens else None
                await over_http(
                    front, door.listening, door.announce, tokens=tokens, until=_end_of(life)
                )
            elif pipes is not None:
                async with client_streams(*pipes) as streams:
                    await _first(converse(front, streams), _end_of(life))
            if await wrapping.go_on():
                stays()
                place = backburner.home
                gone = [] if place.shared else [_gone(place.database)]
                await _first(wrapping.finished(), *gone)
        finally:
            await wrapping.close()


async def converse(server: "Reception", streams: Streams) -> None:
    """Serve one client over its pipes, until it goes.

    It may begin in a later version of the protocol and go back to an earlier one on the same
    pipes, if the wrapped server has no other: so each request is served in the version it is in.
    """
    dispatcher = JSONRPCDispatcher(*streams, inline_methods=frozenset({"initialize"}))
    handshake = Connection.for_loop(dispatcher)

    def runner(params: Mapping[str, Any] | None) -> ServerRunner[Any]:
        meta = meta_of(params)
        version = meta.get(PROTOCOL_VERSION_META_KEY)
        connection = handshake
        if isinstance(version, str):
            connection = Connection.from_envelope(
                version,
                meta.get(CLIENT_INFO_META_KEY),
                meta.get(CLIENT_CAPABILITIES_META_KEY),
                outbound=NotifyOnlyOutbound(dispatcher),
            )
        return ServerRunner(server, connection, None)

    async def on_request(
        dispatch: Dispatch, method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        return await runner(params).on_request(dispatch, method, params)

    async def on_notify(dispatch: Dispatch, method: str, params: Mapping[str, Any] | None) -> None:
        await runner(params).on_notify(dispatch, method, params)

    try:
        await dispatcher.run(on_request, on_notify)
    finally:
        await aclose_shielded(handshake)


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
