"""D10: a session with no progress at all is logged with its unresolved calls."""

import asyncio
import logging
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.runtime.standstill import look_for_standstill
from tests.waiting import wait_until_async


async def test_a_session_that_stands_still_is_logged_once(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "backburner.standstill")
    enough = asyncio.Event()
    bb = Backburner.open(home)

    @bb.tool(budget=0.01)
    async def crawl() -> str:  # pyright: ignore[reportUnusedFunction]  # called by its name
        await enough.wait()
        return "done"

    async with bb:
        called = await bb.session("chat").invoke("crawl")
        assert called.parked
        assert await look_for_standstill(bb.store, {}) == {}, "it has just begun"
        assert caplog.records == []

        async def still() -> object:
            return await look_for_standstill(bb.store, {}, after_s=0.001)

        await wait_until_async(still)
        caplog.clear()
        told = await look_for_standstill(bb.store, {}, after_s=0.001)
        assert set(told) == {("local", "chat")}
        (record,) = caplog.records
        assert called.task.id in record.getMessage()
        assert "crawl" in record.getMessage()
        assert await look_for_standstill(bb.store, told, after_s=0.001) == told
        assert len(caplog.records) == 1, "the same standstill is told once"
        enough.set()
        await called.task.wait(30)
        assert await look_for_standstill(bb.store, told, after_s=0) == {}
