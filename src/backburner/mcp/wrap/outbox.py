"""Notifications in the order in which they came, for a side that may be slow to take them.

What is read on one side is put here at once, without waiting, and written to the other side by one
task. Whoever answers a request waits for what came before the answer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from backburner.model.redaction import redact_text

_log = logging.getLogger("backburner.mcp")

Params = Mapping[str, Any] | None
Write = Callable[[str, Params], Awaitable[None]]

_KEPT = 10_000
"""Notifications are advisory: of a flood that nobody takes the rest is dropped."""


class Outbox:
    """What waits to be written to one side."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: asyncio.Queue[tuple[str, Params] | asyncio.Event] = asyncio.Queue(_KEPT)

    def put(self, method: str, params: Params) -> None:
        """Have it written, after everything that was put before."""
        if not self._waiting.full():
            self._waiting.put_nowait((method, params))

    async def written(self) -> None:
        """Wait until everything that was put before is written."""
        if self._waiting.empty() or self._waiting.full():
            return
        mark = asyncio.Event()
        self._waiting.put_nowait(mark)
        await mark.wait()

    async def run(self) -> None:
        """Write, until cancelled."""
        while True:
            item = await self._waiting.get()
            if isinstance(item, asyncio.Event):
                item.set()
            else:
                await self._try(*item)

    async def _try(self, method: str, params: Params) -> None:
        """What cannot be passed on is lost by itself: others wait for what comes after it."""
        try:
            await self._write(method, params)
        except Exception as error:  # noqa: BLE001 - of whatever the other side has made of it
            _log.warning("%s was not passed on: %s", method[:80], redact_text(repr(error))[:200])
