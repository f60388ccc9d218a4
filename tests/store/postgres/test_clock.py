"""X1, X9: whose clock is wrong, on a record of many machines, decides nothing for the others."""

import pytest

from backburner.model import clock
from backburner.model.clock import SECOND
from backburner.model.order import LONGEST_RETRY_S, Order
from backburner.store.postgres.clock import DatabaseClock
from backburner.store.postgres.node import open_node
from backburner.store.postgres.reader import open_reader
from backburner.store.postgres.store import PostgresStore
from tests.store.clocks import set_wall_clock
from tests.store.conformance.making import ADA, ENDINGS, PLACE, PLENTY, ended, new_task, queued
from tests.store.postgres.conftest import Open
from tests.store.postgres.test_engine import jobs
from tests.waiting import wait_until_async

HOUR = 3600 * SECOND
DAY = 24 * HOUR
ROOM = HOUR // 2
"""What a test may take, and far less than the clocks here are wrong by."""

AHEAD_OR_BEHIND = pytest.mark.parametrize("by", [31 * DAY, -31 * DAY, -HOUR])


def test_what_is_reckoned_is_never_ahead_of_what_the_database_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boot = 1000

    def answered(at: int, *, took: int) -> None:
        nonlocal boot
        asked, boot = boot, boot + took
        reckoned.was(asked, at)

    monkeypatch.setattr(clock, "boot_now", lambda: boot)
    reckoned = DatabaseClock(5000)
    boot += 10
    assert reckoned.now() == 5010
    answered(5015, took=30)  # may have been asked at any moment of these, so it says nothing new
    assert reckoned.now() == 5040
    answered(5060, took=2)
    assert reckoned.now() == 5060, "it is at least so late"
    answered(9000, took=100)
    assert reckoned.now() == 9000, "it was set"
    answered(5000, took=100)
    assert reckoned.now() == 5000, "it was set back"


@AHEAD_OR_BEHIND
async def test_x1_a_program_with_a_wrong_clock_goes_by_the_database_from_the_beginning(
    address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    true = clock.now()
    set_wall_clock(monkeypatch, by)
    store = await open_at(address)
    assert 0 <= store.now() - true < ROOM


@AHEAD_OR_BEHIND
async def test_x1_what_happens_on_a_machine_with_a_wrong_clock_happened_when_it_did(
    address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    """Else all of it would be old enough to be forgotten at once, or never."""
    true = clock.now()
    set_wall_clock(monkeypatch, by)
    store = await open_at(address)
    task = await ended(store)
    times = [task.created_at, task.started_at, task.finished_at]
    times += [event.at for event in await store.events(task.id)]
    times += [signal.created_at for signal in await store.signals(ADA)]
    assert len(times) == 7
    assert all(at is not None and 0 <= at - true < ROOM for at in times)


@AHEAD_OR_BEHIND
async def test_x1_a_claim_of_a_node_with_a_wrong_clock_was_made_when_it_was(
    store: PostgresStore, address: str, monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    """Both ways: through the writer, and the second over the connection of the event loop."""
    true = clock.now()
    tasks = [await queued(store) for _ in range(2)]
    set_wall_clock(monkeypatch, by)
    node = await open_node(address, "nd_1")
    for task in tasks:
        claimed = await node.claim(task.id, 1, PLACE)
        assert claimed is not None
        assert 0 <= (claimed.started_at or 0) - true < ROOM
    await node.close()


@AHEAD_OR_BEHIND
async def test_x1_a_lease_runs_out_for_a_consumer_whose_clock_is_wrong(
    store: PostgresStore, address: str, open_at: Open, monkeypatch: pytest.MonkeyPatch, by: int
) -> None:
    """It looks whether there is anything before it has written anything."""
    await ended(store)
    assert len(await store.claim_signals(ADA, consumer="dies", limit=1, lease_s=0.2)) == 1
    set_wall_clock(monkeypatch, by)
    other = await open_at(address)
    await wait_until_async(
        lambda: other.claim_signals(ADA, consumer="lives", limit=1, lease_s=60), timeout=20
    )


async def test_x1_a_lease_that_holds_is_seen_to_hold_with_any_clock(
    store: PostgresStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ended(store)
    await store.claim_signals(ADA, consumer="one", limit=1, lease_s=60)
    set_wall_clock(monkeypatch, DAY)
    reader = open_reader(address)
    scope = {"owner": ADA.owner, "session": ADA.session}
    assert not reader.any_free_signal("signals_free_in_session", **scope)
    reader.close()


async def test_x9_a_further_attempt_is_not_let_in_early_by_a_clock_that_is_ahead(
    store: PostgresStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await store.create(new_task(order=Order(retries=1)), limit=PLENTY)
    await store.claim(task.id, 1, PLACE)
    due = store.now() + round(LONGEST_RETRY_S * SECOND) // 2
    assert await store.fail_try(task.id, 1, ENDINGS["exit"], due) is not None
    set_wall_clock(monkeypatch, DAY)
    node = await open_node(address, "nd_1")
    assert await node.next_held() == due
    await node.let_in_due()
    assert [job[:2] for job in jobs(address)] == [(task.id, 1)]
    await node.close()


async def test_x9_a_further_attempt_is_not_let_in_late_by_a_clock_that_is_behind(
    store: PostgresStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await store.create(new_task(order=Order(retries=1)), limit=PLENTY)
    await store.claim(task.id, 1, PLACE)
    set_wall_clock(monkeypatch, -2 * HOUR)
    node = await open_node(address, "nd_1")
    assert await node.fail_try(task.id, 1, ENDINGS["exit"], node.now() + SECOND // 5) is not None

    async def is_let_in() -> bool:
        await node.let_in_due()
        return (task.id, 2) in [job[:2] for job in jobs(address)]

    await wait_until_async(is_let_in)
    await node.close()
