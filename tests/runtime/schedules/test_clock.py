"""E9: a clock that is set, forward or back, makes no firing happen twice or never."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backburner import Backburner, Settings
from backburner.model import clock
from backburner.model.clock import SECOND, Instant
from backburner.model.home import Home
from backburner.runtime.schedules import clockwork as module
from backburner.runtime.schedules.clockwork import Clockwork
from tests.faults.victims import nobody_keeps
from tests.waiting import wait_until_async

DAY = 86400 * SECOND
REAL_NOW = clock.now


def set_clock(monkeypatch: pytest.MonkeyPatch, to: Instant) -> None:
    """From here on it goes on from there."""
    ahead = to - REAL_NOW()
    monkeypatch.setattr(clock, "now", lambda: REAL_NOW() + ahead)


@contextlib.asynccontextmanager
async def ticking(bb: Backburner, home: Path) -> AsyncGenerator[list[str]]:
    """A clockwork in this process, whose clock can be set."""
    reports: list[str] = []
    clockwork = Clockwork(bb.store, Home(home), Settings(), reports.append)
    running = asyncio.create_task(clockwork.run())
    try:
        yield reports
    finally:
        running.cancel()
        await asyncio.wait([running])
        await clockwork.close()


async def test_e9_a_clock_that_is_set_forward_or_back(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_NAP_S", 0.05)
    with nobody_keeps(home):
        async with Backburner.open(home) as bb, ticking(bb, home) as reports:
            session = bb.session()
            schedule = await session.schedule("0 12 * * *", "true", missed="skip")
            first = schedule.record.next_at
            assert first is not None

            async def fired(times: int) -> bool:
                return (await schedule.refresh()).record.fired == times

            set_clock(monkeypatch, first + SECOND)  # nobody is told of that
            await wait_until_async(lambda: fired(1))
            assert schedule.record.next_at == first + DAY
            await (await session.tasks())[0].stop()

            set_clock(monkeypatch, first - 3600 * SECOND)
            await schedule.pause()
            await schedule.resume()
            assert schedule.record.next_at == first + DAY  # not the one that has been

            set_clock(monkeypatch, first + 30 * DAY + 3600 * SECOND)

            async def moved_on() -> bool:
                return (await schedule.refresh()).record.next_at == first + 31 * DAY

            await wait_until_async(moved_on)
            assert schedule.record.fired == 1
            assert [firing.skipped for firing in await schedule.firings()] == [True, False]
            assert reports == []


async def test_e9_a_clock_that_was_a_year_ahead_does_not_cost_a_year(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_NAP_S", 0.05)
    with nobody_keeps(home):
        async with Backburner.open(home) as bb:
            session = bb.session()
            schedule = await session.schedule("0 12 * * *", "true")
            first = schedule.record.next_at
            assert first is not None

            async def expected(nominal: Instant) -> bool:
                return (await schedule.refresh()).record.next_at == nominal

            async with ticking(bb, home):
                set_clock(monkeypatch, first + 365 * DAY + SECOND)
                await wait_until_async(lambda: expected(first + 366 * DAY))
                set_clock(monkeypatch, first + 3600 * SECOND)
                await wait_until_async(lambda: expected(first + DAY))
                set_clock(monkeypatch, first + 365 * DAY + SECOND)
                await wait_until_async(lambda: expected(first + 366 * DAY))
            # Set right while nobody was there.
            set_clock(monkeypatch, first + DAY + 3600 * SECOND)
            async with ticking(bb, home) as reports:
                await wait_until_async(lambda: expected(first + 2 * DAY))
            assert reports == []
            for task in await session.tasks():
                await task.stop()


async def test_e9_a_single_time_that_finds_no_room_fires_when_there_is(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_NAP_S", 0.05)
    with nobody_keeps(home):
        async with Backburner.open(home, settings=Settings(shell_per_session=1)) as bb:
            session = bb.session()
            when = datetime.now(UTC) + timedelta(hours=1)
            schedule = await session.schedule(when, "true")
            other = await session.run("true")
            at = schedule.record.next_at
            assert at is not None
            set_clock(monkeypatch, at + SECOND)

            async def is_put_off() -> bool:
                return (await schedule.refresh()).record.detail is not None

            async with ticking(bb, home):
                await wait_until_async(is_put_off)
                assert schedule.state == "active"
                await other.stop()
                set_clock(monkeypatch, at + 32 * SECOND)

                async def fired() -> bool:
                    return (await schedule.refresh()).record.fired == 1

                await wait_until_async(fired)
            assert schedule.state == "done"
            assert schedule.record.last_task is not None
            await (await session.task(schedule.record.last_task)).stop()


async def test_e9_a_schedule_whose_zone_is_gone_is_paused_and_says_why(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data of the zones can be replaced while a schedule waits."""
    from tests.faults.record import rows

    with nobody_keeps(home):
        async with Backburner.open(home) as bb:
            schedule = await bb.session().schedule("0 12 * * *", "true", tz="Europe/Berlin")
            rows(home, "UPDATE schedule SET zone = 'Atlantis/Poseidonis'")
            due = schedule.record.due_at
            assert due is not None
            set_clock(monkeypatch, due + SECOND)
            async with ticking(bb, home) as reports:

                async def paused() -> bool:
                    return (await schedule.refresh()).state == "paused"

                await wait_until_async(paused)
            assert "there is no time zone 'Atlantis/Poseidonis'" in str(schedule.record.detail)
            assert len(reports) == 1
            assert await bb.session().tasks() == []


async def test_e9_a_fault_of_one_schedule_is_not_the_fault_of_the_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its piece cannot be read as one: its firing fails, the other one's is made."""
    from tests.faults.record import rows

    with nobody_keeps(home):
        async with Backburner.open(home) as bb:
            session = bb.session()
            broken = await session.schedule("0 12 * * *", "true", id="broken")
            whole = await session.schedule("0 12 * * *", "true", id="whole")
            rows(home, "UPDATE schedule SET hand_over = 'nonsense' WHERE id = 'broken'")
            due = whole.record.due_at
            assert due is not None
            set_clock(monkeypatch, due + SECOND)
            async with ticking(bb, home):

                async def both() -> bool:
                    return len(await session.tasks()) == 2

                await wait_until_async(both)
            states = {task.record.schedule: task.state for task in await session.tasks()}
            assert states == {broken.id: "failed", whole.id: "queued"}
            for task in await session.tasks():
                await task.stop()
