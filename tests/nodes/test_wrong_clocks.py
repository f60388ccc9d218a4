"""E9, E12: a machine whose clock is wrong by a month forgets and fires nothing for that."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from backburner import Backburner, Schedule, Settings
from backburner.cli.schedule_options import from_now, read_when
from backburner.model import clock
from backburner.model.clock import SECOND
from backburner.model.errors import NotAllowed
from backburner.model.home import Home
from backburner.runtime.retention import prune_now_and_then
from backburner.runtime.schedules import clockwork as module
from backburner.runtime.schedules.clockwork import Clockwork
from backburner.runtime.tokens import TokenService
from backburner.store.postgres.node import open_node
from tests.runtime.schedules.times import expect_since
from tests.store.clocks import set_wall_clock
from tests.store.conformance.making import ADA, ended
from tests.store.postgres.test_database import run
from tests.waiting import wait_until_async

MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE
MONTH = 31 * DAY
ROOM = 30 * MINUTE
"""What a test may take, and far less than the clocks here are wrong by."""

AHEAD_OR_BEHIND = pytest.mark.parametrize("by", [MONTH, -MONTH])


Ticking = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture
def ticking(address: str, home: Path) -> Ticking:
    """The clockwork of one more node, whose clock is as it is then."""

    @contextlib.asynccontextmanager
    async def one_more() -> AsyncGenerator[None]:
        node = await open_node(address, "nd_1", carries_out=True)
        reports: list[str] = []
        clockwork = Clockwork(node, Home(home, address), Settings(), reports.append)
        running = asyncio.create_task(clockwork.run())
        try:
            yield
            assert reports == []
        finally:
            running.cancel()
            await asyncio.wait([running])
            await clockwork.close()
            await node.close()

    return one_more


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_NAP_S", 0.05)
    monkeypatch.setattr(module, "_LOOK_OVER_EVERY_S", 0.05)


async def two(shared: Backburner, missed: str) -> list[Schedule]:
    """Both are to fire in half a day."""
    when = datetime.now(UTC) + timedelta(hours=12)
    schedule = partial(shared.session("chat").schedule, f"0 {when.hour} * * *", missed=missed)
    return [await schedule("true") for _ in range(2)]


# What is old


@AHEAD_OR_BEHIND
async def test_e12_a_node_with_a_wrong_clock_forgets_what_is_old_and_nothing_else(
    shared: Backburner, address: str, home: Path, monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    store = shared.store
    young, old = await ended(store), await ended(store)
    run(
        address,
        f"UPDATE backburner.task SET created_at = 1, started_at = 1,"
        f" finished_at = {clock.now() - MONTH} WHERE id = '{old.id}'",
    )
    set_wall_clock(monkeypatch, by)
    node = await open_node(address, "nd_1", carries_out=True)
    reports: list[str] = []
    pruning = asyncio.create_task(
        prune_now_and_then(node, Home(home, address), Settings(), reports.append)
    )
    await wait_until_async(lambda: reports)
    pruning.cancel()
    await asyncio.wait([pruning])
    await node.close()
    assert reports == ["pruned 1 tasks, 0 bytes"]
    assert [task.id for task in await store.newest(ADA, limit=9)] == [young.id]
    (told,) = await store.claim_signals(ADA, consumer="c", limit=9, lease_s=60)
    assert told.task == young.id


@AHEAD_OR_BEHIND
async def test_a_token_holds_for_as_long_as_it_was_said_wherever_it_is_shown(
    shared: Backburner, address: str, monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    made = TokenService(shared.store, shared.home)
    _, text = await made.create("for a day", lasts_s=86400)
    over, gone = await made.create("for no time", lasts_s=0.001)
    assert over.expires_at is not None
    await wait_until_async(lambda: shared.store.now() > (over.expires_at or 0))
    set_wall_clock(monkeypatch, by)
    async with Backburner.open(address) as elsewhere:
        tokens = TokenService(elsewhere.store, elsewhere.home)
        assert (await tokens.check(text)).label == "for a day"
        with pytest.raises(NotAllowed):
            await tokens.check(gone)


# What is due


@pytest.mark.parametrize(
    ("missed", "by"), [(missed, by) for missed in ("skip", "once", "all") for by in (MONTH, -MONTH)]
)
async def test_e9_a_node_with_a_wrong_clock_fires_what_is_due_and_nothing_else(
    ticking: Ticking, shared: Backburner, monkeypatch: pytest.MonkeyPatch, missed: str, by: int
) -> None:
    """What is due for days shows that it has looked at all of them."""
    later, due = await two(shared, missed)
    single = await shared.session("chat").schedule(datetime.now(UTC) + timedelta(hours=1), "true")
    expected = later.record.next_at
    assert expected is not None
    await expect_since(shared, due, expected - 4 * DAY)
    set_wall_clock(monkeypatch, by)
    async with ticking():

        async def is_dealt_with() -> bool:
            return (await due.refresh()).record.next_at == expected

        await wait_until_async(is_dealt_with)
        assert due.record.fired == {"skip": 0, "once": 1, "all": 4}[missed]
        assert due.record.last_at is not None
        assert due.record.last_at < expected
        assert (await later.refresh()).record.next_at == expected
        assert (await single.refresh()).record.fired == later.record.fired == 0


@pytest.mark.usefixtures("looks_often")
@pytest.mark.parametrize("dealt_with", ["a month ahead", "what was due"])
async def test_e9_what_a_program_with_a_wrong_clock_has_put_off_is_brought_forward_meanwhile(
    ticking: Ticking, shared: Backburner, address: str, dealt_with: str
) -> None:
    """One of the release before, say. Nobody begins anew for that."""
    schedule, witness = await two(shared, "all")
    expected, number = schedule.record.next_at, schedule.record.seq
    assert expected is not None
    last = expected + MONTH if dealt_with == "a month ahead" else expected - DAY
    async with ticking():
        await expect_since(shared, witness, expected - DAY)

        async def witness_has_fired() -> bool:
            return (await witness.refresh()).record.fired == 1

        await wait_until_async(witness_has_fired)
        run(
            address,
            f"INSERT INTO firing VALUES ({number}, {expected - DAY}, 1, NULL, 'as it was');"
            f" INSERT INTO firing VALUES ({number}, {expected + MONTH}, 1, 'bg_1', NULL)"
            f" ON CONFLICT DO NOTHING;"
            f" UPDATE schedule SET last_at = {last}, next_at = {expected + MONTH + DAY},"
            f" due_at = {expected + MONTH + DAY} WHERE seq = {number}",
        )

        async def is_expected_again() -> bool:
            return (await schedule.refresh()).record.next_at == expected

        await wait_until_async(is_expected_again)
    assert schedule.record.due_at == expected
    assert schedule.record.last_at == expected - DAY


@AHEAD_OR_BEHIND
async def test_e9_a_schedule_of_a_program_with_a_wrong_clock_begins_at_the_next_time(
    home: Path,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    by: int,
) -> None:
    true = clock.now()
    set_wall_clock(monkeypatch, by)
    async with Backburner.open(address) as bb:
        session = bb.session("chat")
        schedule = await session.schedule("0 * * * *", "true")
        for _ in range(2):
            assert 0 < (schedule.record.next_at or 0) - true < 60 * MINUTE + ROOM
            assert 0 <= schedule.record.created_at - true < ROOM
            await schedule.pause()
            await schedule.resume()
        when = from_now(read_when(None, "+90m"), bb.store.now())
        single = await session.schedule(when, "true")
        assert 0 <= (single.record.next_at or 0) - true - 90 * MINUTE < ROOM
