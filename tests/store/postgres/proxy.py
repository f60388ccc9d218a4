"""A wire between a store and its database that can be cut, also in the middle of a commit."""

import asyncio
import contextlib
from enum import Enum, auto
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from tests.waiting import pause_async


class Cut(Enum):
    """When the next connection that commits, or says something else, is cut off."""

    NEVER = auto()
    BEFORE = auto()
    """The database does not hear of it."""
    AFTER = auto()
    """The database has committed, and its answer is lost."""
    SILENT = auto()
    """The same, and nobody is cut off: nothing is heard of the database any more."""


class Wire:
    """For an `async with` block; `address` leads through it."""

    def __init__(self, address: str, *, at: bytes = b"COMMIT") -> None:
        """Where it is to be ``cut``, that is done when these words are said."""
        self._at = at
        self._parts = urlsplit(address)
        self.cut = Cut.NEVER
        self.cuts = 0
        self.closed = False
        """Whether nobody gets through."""
        self.silent = False
        """Whether what the database says is not heard; nobody is cut off."""
        self.late_s = 0.0
        """So long is an answer on its way."""
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        user = self._parts.username
        place = self._parts._replace(netloc=f"{user}@127.0.0.1:{port}")
        self.address = urlunsplit(place)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut_all()
        self._server.close()
        await self._server.wait_closed()

    def cut_all(self) -> None:
        """Every connection, now."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection(
            self._parts.hostname, self._parts.port
        )
        both = {writer, far_writer}
        self._writers |= both
        answer_is_lost = asyncio.Event()
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(
                self._upstream(reader, far_writer, writer, answer_is_lost),
                self._downstream(far_reader, writer, far_writer, answer_is_lost),
            )
        self._writers -= both
        for each in both:
            each.transport.abort()

    async def _upstream(
        self,
        reader: asyncio.StreamReader,
        far: asyncio.StreamWriter,
        near: asyncio.StreamWriter,
        answer_is_lost: asyncio.Event,
    ) -> None:
        while data := await reader.read(65536):
            if self._at in data and self.cut is not Cut.NEVER:
                how, self.cut = self.cut, Cut.NEVER
                self.cuts += 1
                if how is Cut.BEFORE:
                    near.transport.abort()
                    far.transport.abort()
                    return
                if how is Cut.SILENT:
                    self.silent = True
                else:
                    answer_is_lost.set()
            far.write(data)
            await far.drain()
        far.close()

    async def _downstream(
        self,
        reader: asyncio.StreamReader,
        near: asyncio.StreamWriter,
        far: asyncio.StreamWriter,
        answer_is_lost: asyncio.Event,
    ) -> None:
        while data := await reader.read(65536):
            if answer_is_lost.is_set():
                near.transport.abort()
                far.transport.abort()
                return
            if self.silent:
                continue
            if self.late_s:
                await pause_async(self.late_s, because="the database is far away")
            near.write(data)
            await near.drain()
        near.close()
