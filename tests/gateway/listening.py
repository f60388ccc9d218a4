"""A platform's adapter that listens, and what it hears, for tests of the adapters."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from backburner.gateway.platform import Heard, MenuEntry, Message, Platform, Press
from tests.waiting import wait_until_async

MENU = (
    MenuEntry("background", "Start a task", "PROMPT"),
    MenuEntry("tasks", "Show tasks", ""),
)


@dataclass
class Ears:
    """What was heard."""

    listener: asyncio.Task[None] = field(init=False)
    heard: list[Heard] = field(default_factory=list[Heard])
    open: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared, `hear` does not return."""

    fails: list[Exception] = field(default_factory=list[Exception])
    """What `hear` raises, one for each call, before it hears again."""

    async def hear(self, heard: Heard) -> None:
        await self.open.wait()
        if self.fails:
            raise self.fails.pop(0)
        self.heard.append(heard)

    async def next(self, number: int = 1) -> Heard:
        """The so-manieth of all that is heard."""
        await wait_until_async(
            lambda: len(self.heard) >= number or self.listener.done(),
            message=lambda: f"only heard {self.heard}",
        )
        if len(self.heard) < number:
            await self.listener
        return self.heard[number - 1]

    async def message(self, number: int = 1) -> Message:
        heard = await self.next(number)
        assert isinstance(heard, Message)
        return heard

    async def press(self, number: int = 1) -> Press:
        heard = await self.next(number)
        assert isinstance(heard, Press)
        return heard


@contextlib.asynccontextmanager
async def listening(platform: Platform, menu: Sequence[MenuEntry] = MENU) -> AsyncGenerator[Ears]:
    """Let it listen until the block ends."""

    async def start() -> None:
        await platform.listen(ears.hear, menu)

    ears = Ears()
    ears.open.set()
    ears.listener = asyncio.create_task(start())
    body = asyncio.current_task()
    assert body is not None

    def ended(listener: asyncio.Task[None]) -> None:
        if not listener.cancelled():
            body.cancel()  # it failed: nothing that is waited for will come

    ears.listener.add_done_callback(ended)
    try:
        yield ears
    finally:
        ears.listener.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await ears.listener
