"""What the tests of the gateway share: a chat server, and a gateway to it."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.gateway.desk import Desk, Rights
from backburner.gateway.gateway import Setup, serve
from backburner.gateway.people import Guests
from backburner.gateway.posting import Pace
from tests.gateway.chat_server import ChatServer, chat_server
from tests.gateway.line_platform import LinePlatform
from tests.waiting import wait_until_async

AT_ONCE = Pace(every_s=0.0)

Gateway = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncGenerator[ChatServer]:
    """The chat server."""
    async with chat_server(tmp_path) as server:
        yield server


@pytest.fixture
def gateway(home: Path, chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Gateway:
    """Runs a gateway in this process: ada and bob may speak. What fails is tried again soon."""
    monkeypatch.setenv("BACKBURNER_DELIVERY_RETRY_S", "0.05")

    @contextlib.asynccontextmanager
    async def run(
        *,
        agent: str | None = "echo",
        jobs: bool = True,
        folder: Path | None = None,
        pace: Pace = AT_ONCE,
        text: int = 2000,
        zone: str = "UTC",
    ) -> AsyncGenerator[Desk]:
        desks: list[Desk] = []
        rights = Rights(jobs=jobs, folder=None if folder is None else str(folder))
        setup = Setup(rights, agent, zone, pace=pace, edit_every_s=0.05)
        platform = LinePlatform(chat.path, text=text)
        people = Guests("line", ["ada", "bob"])
        async with Backburner.open() as backburner:
            serving = asyncio.create_task(
                serve(backburner, platform, people, setup, listening=desks.append)
            )
            try:
                await wait_until_async(lambda: serving.done() or (desks and chat.connected))
                if serving.done():
                    serving.result()
                yield desks[0]
            finally:
                serving.cancel()
                await asyncio.wait([serving])
                if desks:
                    await wait_until_async(lambda: not chat.connected)

    return run
