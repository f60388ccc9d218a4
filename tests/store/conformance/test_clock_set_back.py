"""A wall clock that is set back, by an hour or by years, ends nothing early and blocks nothing."""

import pytest

from backburner.model.clock import SECOND
from backburner.model.signals import end_key
from backburner.model.states import State
from backburner.store.protocol import Store
from tests.store.clocks import set_clock_of_record
from tests.store.conformance.making import ADA, ENDINGS, PLACE, ended, get, queued, running
from tests.waiting import wait_until_async

HOUR = 3600 * SECOND


class Clock:
    """The one of the record, moved by a number of microseconds; boot time is left alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._moved_by = 0

    def set_back(self, by: int) -> None:
        self._moved_by -= by
        set_clock_of_record(self._monkeypatch, self._moved_by)


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.parametrize("by", [1, HOUR, 40 * 365 * 24 * HOUR])
async def test_a_task_does_not_end_before_it_started(store: Store, wall: Clock, by: int) -> None:
    task = await running(store)
    wall.set_back(by)
    done = await store.finish(task.id, 1, ENDINGS["exit"])
    assert done is not None
    assert done.started_at is not None
    assert done.finished_at is not None
    assert done.finished_at >= done.started_at >= done.created_at


async def test_a_task_does_not_start_before_it_was_created(store: Store, wall: Clock) -> None:
    task = await queued(store)
    wall.set_back(HOUR)
    claimed = await store.claim(task.id, 1, PLACE)
    assert claimed is not None
    assert claimed.started_at is not None
    assert claimed.started_at >= claimed.created_at


async def test_a_queued_task_is_not_canceled_before_it_was_created(
    store: Store, wall: Clock
) -> None:
    task = await queued(store)
    wall.set_back(HOUR)
    stopped = await store.request_stop(task.id, ADA, 5.0)
    assert stopped is not None
    assert stopped.state is State.CANCELED
    assert (stopped.finished_at or 0) >= stopped.created_at


async def test_a_stop_is_recorded_and_can_be_made_more_urgent(store: Store, wall: Clock) -> None:
    task = await running(store)
    await store.request_stop(task.id, ADA, 5.0)
    wall.set_back(HOUR)
    assert await store.request_stop(task.id, ADA, 0.0) is not None
    after = await get(store, task.id)
    assert after.stop is not None
    assert after.stop.grace_s == 0


async def test_newest_first_is_the_order_of_creation(store: Store, wall: Clock) -> None:
    tasks: list[str] = []
    for _ in range(4):
        tasks.append((await queued(store)).id)
        wall.set_back(HOUR)
    assert [task.id for task in await store.newest(ADA, limit=10)] == tasks[::-1]


async def test_events_keep_their_numbers(store: Store, wall: Clock) -> None:
    task = await running(store)
    wall.set_back(HOUR)
    await store.finish(task.id, 1, ENDINGS["exit"])
    assert [event.number for event in await store.events(task.id)] == [1, 2, 3]


async def test_x1_a_signal_can_be_claimed_and_acknowledged(store: Store, wall: Clock) -> None:
    task = await ended(store)
    wall.set_back(HOUR)
    assert len(await store.claim_signals(ADA, consumer="c", limit=1, lease_s=60)) == 1
    assert await store.acknowledge([end_key(task.id)], ADA) == 1
    (told,) = await store.signals(ADA)
    assert (told.delivered_at or 0) >= told.created_at


async def test_x1_a_lease_runs_out_all_the_same(store: Store, wall: Clock) -> None:
    await ended(store)
    await store.claim_signals(ADA, consumer="dies", limit=1, lease_s=0.2)
    wall.set_back(HOUR)
    await wait_until_async(
        lambda: store.claim_signals(ADA, consumer="lives", limit=1, lease_s=60), timeout=20
    )


async def test_x1_a_clock_set_forward_ends_no_lease(store: Store, wall: Clock) -> None:
    await ended(store)
    await store.claim_signals(ADA, consumer="one", limit=1, lease_s=60)
    wall.set_back(-24 * HOUR)
    assert await store.claim_signals(ADA, consumer="two", limit=1, lease_s=60) == []


async def test_x1_a_retry_is_not_put_off_by_an_hour(store: Store, wall: Clock) -> None:
    task = await ended(store)
    await store.claim_signals(ADA, consumer="one", limit=1, lease_s=60)
    retry_at = store.now() + SECOND // 5
    await store.delivery_failed(end_key(task.id), "no answer", retry_at)
    wall.set_back(HOUR)
    await wait_until_async(
        lambda: store.claim_signals(ADA, consumer="two", limit=1, lease_s=60), timeout=20
    )
