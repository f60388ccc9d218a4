"""The wrapped server as something to talk to: a command over its pipes, or a URL over HTTP."""

import asyncio
import contextlib
import os
import select
import shlex
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TextIO

import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp_types import PROTOCOL_VERSION_META_KEY

from backburner.mcp.wrap.meta import meta_of
from backburner.mcp.wrap.streams import Streams
from backburner.model.errors import UsageError
from backburner.work.handover import environment_for_strangers

_CONNECT_S = 30.0
_STDERR = 2

_TASK_METHODS = "tasks/"
"""Of the Tasks extension: their `taskId` is what they are about."""


class Server:
    """Where the wrapped server is, and how it is reached."""

    def __init__(self, target: str | Sequence[str], *, shared: bool = False) -> None:
        """``shared``: of our record, whose password is not for the server."""
        words = [target] if isinstance(target, str) else list(target)
        if not words or not words[0]:
            raise UsageError("there is no server to wrap", remedy="give a command, or a URL")
        self.url = words[0] if words[0].startswith(("http://", "https://")) else None
        if self.url is not None and len(words) > 1:
            raise UsageError("a URL stands alone", remedy="give the URL and nothing after it")
        self._words = words
        self._shared = shared

    def __str__(self) -> str:
        """As it is told; what follows a program may hold secrets, as may the query of a URL."""
        if self.url is not None:
            return self.url.partition("?")[0].rpartition("@")[2] or "the URL"
        return shlex.quote(os.path.basename(self._words[0]))

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Streams]:
        """Start it, or connect to it; at the end it is ended, or let go."""
        if self.url is not None:
            # No limit for reading: a call may take hours, which is what this is for.
            patience = httpx2.Timeout(_CONNECT_S, read=None)
            async with (
                httpx2.AsyncClient(timeout=patience) as client,
                streamable_http_client(self.url, http_client=client) as streams,
            ):
                yield streams
            return
        # What is no text does not end a conversation: its line is, at worst, no message.
        command = StdioServerParameters(
            command=self._words[0],
            args=self._words[1:],
            env=environment_for_strangers(shared=self._shared),
            cwd=os.getcwd(),
            encoding_error_handler="replace",
        )
        with _complaints() as complaints:
            async with stdio_client(command, errlog=complaints) as streams:
                complaints.close()  # the server has its own copy
                yield streams


@contextlib.contextmanager
def _complaints() -> Generator[TextIO]:
    """A file for the server's standard error, copied to ours for as long as somebody reads that.

    Not ours itself: when the client is gone its end is closed, and a server that goes on with a
    parked call would die of its next complaint.
    """
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    loop = asyncio.get_running_loop()

    def copy() -> None:
        try:
            data = os.read(reading, select.PIPE_BUF)
        except BlockingIOError:
            return
        if not data:
            loop.remove_reader(reading)
            return
        # A client that does not read is not waited for; what it can take, it takes whole.
        with contextlib.suppress(OSError):
            if select.select((), (_STDERR,), (), 0)[1]:
                os.write(_STDERR, data)

    loop.add_reader(reading, copy)
    file = os.fdopen(writing, "w")
    try:
        yield file
    finally:
        file.close()
        copy()
        loop.remove_reader(reading)
        os.close(reading)


def headers_of(method: str, params: Mapping[str, Any], version: str | None) -> dict[str, str]:
    """What goes into the head of an HTTP request; pipes have none.

    ``version`` is what an `initialize` has agreed on; later protocols say it in every request.
    """
    said = meta_of(params).get(PROTOCOL_VERSION_META_KEY)
    if not isinstance(said, str):
        return {} if version is None else {MCP_PROTOCOL_VERSION_HEADER: version}
    headers = {MCP_PROTOCOL_VERSION_HEADER: said, MCP_METHOD_HEADER: method}
    key = "taskId" if method.startswith(_TASK_METHODS) else NAME_BEARING_METHODS.get(method, "")
    if isinstance(name := params.get(key), str):
        headers[MCP_NAME_HEADER] = encode_header_value(name)
    return headers
