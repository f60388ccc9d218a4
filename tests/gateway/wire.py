"""A server of a chat platform on this machine, in a thread of its own.

So that a test in an event loop and one that starts processes use it the same way. It goes on a
port that it keeps: it can be away for a while and come back, as a network does.
"""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Generator
from typing import Any, Self, TypeVar

from aiohttp import web

from tests.ports import free_port

T = TypeVar("T")


class Wire:
    """What the three platforms' servers share: being there, and being away."""

    def __init__(self) -> None:
        self.port = free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wire server")
        self._runner: web.AppRunner | None = None

    def application(self) -> web.Application:
        """The routes; of the subclass."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Generator[Self]:
        """The server, until the block ends."""
        server = cls()
        server._thread.start()
        try:
            server.come_back()
            yield server
        finally:
            server.go_away()
            server.do(_end_the_rest())
            server._loop.call_soon_threadsafe(server._loop.stop)
            server._thread.join()
            server._loop.close()

    def come_back(self) -> None:
        """Listen, where it is not already."""
        self.do(self._listen())

    def go_away(self) -> None:
        """Cut every connection, and take none."""
        self.do(self._leave())

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry this out in the server's own event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> None:
        if self._runner is not None:
            return
        self._runner = web.AppRunner(
            self.application(),
            access_log=None,
            shutdown_timeout=0.01,
            handler_cancellation=True,  # who polls and leaves is not waited for
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()

    async def _leave(self) -> None:
        if (runner := self._runner) is not None:
            self._runner = None
            await self.cut_off()
            await runner.cleanup()

    async def cut_off(self) -> None:
        """End what is held open; of the subclass."""


async def _end_the_rest() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    # Who connected in the moment in which it left was let in, and nobody has closed that.
    for transport in [*getattr(asyncio.get_running_loop(), "_transports").values()]:  # noqa: B009 - nothing public tells
        transport.abort()
