"""The client's pipes as streams of messages.

Reading happens in a thread of its own that nobody waits for: a client may keep its end open after
it has let go of us, and then a read never returns.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

Streams = TransportStreams
"""Messages that come, and messages that go."""

Incoming = SessionMessage | Exception


@asynccontextmanager
async def client_streams(incoming: int, outgoing: int) -> AsyncGenerator[Streams]:
    """Over two descriptors, of which the second leads nowhere at the end."""
    into, read = anyio.create_memory_object_stream[Incoming](0)
    write, out_of = anyio.create_memory_object_stream[SessionMessage](0)
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(incoming, into, loop), daemon=True).start()
    writer = asyncio.create_task(_write(outgoing, out_of))
    try:
        yield read, write
    finally:
        for stream in (into, read, write):
            stream.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(writer, 1.0)  # what is written already is on its way
        out_of.close()
        _let_go(outgoing)


def _read(
    incoming: int, into: MemoryObjectSendStream[Incoming], loop: asyncio.AbstractEventLoop
) -> None:
    """One message at a time; the next is read when that was taken."""
    with (
        os.fdopen(incoming, "rb", closefd=False) as lines,
        contextlib.suppress(
            OSError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError
        ),
    ):
        for line in lines:
            if line.strip():
                asyncio.run_coroutine_threadsafe(into.send(_parsed(line)), loop).result()
        loop.call_soon_threadsafe(into.close)


def _parsed(line: bytes) -> Incoming:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _write(outgoing: int, out_of: Any) -> None:
    async for item in out_of:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        try:
            await asyncio.to_thread(_write_all, outgoing, text.encode() + b"\n")
        except OSError:
            return  # nobody reads any more: the end of the input will tell


def _let_go(descriptor: int) -> None:
    """Not closed: a thread that is stuck in it would write into whatever gets its number next."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _write_all(outgoing: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(outgoing, rest) :]
