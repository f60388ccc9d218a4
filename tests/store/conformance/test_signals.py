"""X1: told always, once: claim, lease, acknowledgement, retry; the delivery state is visible."""

import asyncio
from collections.abc import Sequence

import pytest

from backburner.model import clock
from backburner.model.clock import SECOND
from backburner.model.signals import END_SIGNALS, INBOX, Signal, SignalState, end_key
from backburner.model.telling import how_it_ended
from backburner.store.protocol import Scope, Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ADAS_OTHER_SESSION,
    BOB,
    ENDINGS,
    EVERY_SESSION_OF_ADA,
    PLACE,
    ended,
    get,
    queued,
    running,
)
from tests.waiting import wait_until_async


async def claim(
    store: Store,
    consumer: str = "one",
    *,
    scope: Scope = ADA,
    limit: int = 100,
    lease_s: float = 60,
) -> list[Signal]:
    return await store.claim_signals(scope, consumer=consumer, limit=limit, lease_s=lease_s)


async def the_signal(store: Store, task_id: str) -> Signal:
    (signal,) = await store.signals(EVERY_SESSION_OF_ADA, task=task_id)
    return signal


def keys(signals: Sequence[Signal]) -> list[str]:
    return [signal.key for signal in signals]


# One signal for each end


@pytest.mark.parametrize("name", ENDINGS)
async def test_x1_every_end_is_told_with_one_signal(store: Store, name: str) -> None:
    before = store.now()
    task = await ended(store, ending=ENDINGS[name])
    signal = await the_signal(store, task.id)
    assert signal.key == end_key(task.id)
    assert (signal.task, signal.owner, signal.session) == (task.id, "ada", "chat")
    assert signal.kind is END_SIGNALS[task.state]
    assert how_it_ended(ENDINGS[name]) in signal.text  # A5
    assert task.id in signal.text
    assert task.title in signal.text
    assert signal.data["state"] == task.state
    assert (signal.state, signal.reason, signal.tries) == (SignalState.PENDING, None, 0)
    assert (signal.channel, signal.delivered_at) == (INBOX, None)
    assert before <= signal.created_at <= store.now()


async def test_x1_a_task_that_has_not_ended_is_not_told_of(store: Store) -> None:
    task = await running(store)
    await store.requeue(task.id, 1, "again")
    await store.claim(task.id, 2, PLACE)
    await store.request_stop(task.id, ADA, 5.0)
    assert await store.signals(ADA) == []
    assert (await get(store, task.id)).signal_state is None


async def test_x1_the_state_of_the_delivery_is_visible_at_the_task(store: Store) -> None:
    task = await ended(store)
    assert (await get(store, task.id)).signal_state is SignalState.PENDING
    await claim(store)
    assert (await get(store, task.id)).signal_state is SignalState.CLAIMED
    await store.delivery_failed(end_key(task.id), "no answer", store.now())
    assert (await get(store, task.id)).signal_state is SignalState.FAILED
    assert (await get(store, task.id)).signal_delivered_at is None
    before = store.now()
    await store.acknowledge([end_key(task.id)], ADA)
    told = await get(store, task.id)
    assert told.signal_state is SignalState.DELIVERED
    assert told.signal_delivered_at is not None
    assert before <= told.signal_delivered_at <= store.now()


# Listing


async def test_signals_are_listed_oldest_first_by_state_and_task(store: Store) -> None:
    tasks = [await ended(store) for _ in range(4)]
    all_keys = [end_key(task.id) for task in tasks]
    await store.acknowledge(all_keys[:1], ADA)
    await store.drop_signal(all_keys[1], "not wanted")
    listed = await store.signals(ADA)
    assert keys(listed) == all_keys
    assert keys(await store.signals(ADA, states=[SignalState.PENDING])) == all_keys[2:]
    final = [SignalState.DELIVERED, SignalState.DROPPED]
    assert keys(await store.signals(ADA, states=final)) == all_keys[:2]
    assert keys(await store.signals(ADA, limit=2)) == all_keys[:2]
    assert keys(await store.signals(ADA, after=listed[1].seq)) == all_keys[2:]
    assert keys(await store.signals(ADA, task=tasks[2].id)) == all_keys[2:3]
    assert await store.signals(ADA, task="bg_none") == []


# Claiming


async def test_x1_a_claimed_signal_is_its_consumers_alone(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    task = await ended(store)
    (claimed,) = await claim(store, "one")
    assert (claimed.key, claimed.state, claimed.tries) == (
        end_key(task.id),
        SignalState.CLAIMED,
        1,
    )
    assert await claim(store, "two") == []
    assert await claim(other, "two") == []
    assert await claim(store, "one") == [], "it has that one already"
    assert await the_signal(other, task.id) == claimed


async def test_x1_signals_are_claimed_oldest_first_within_a_limit(store: Store) -> None:
    wanted = [end_key((await ended(store)).id) for _ in range(5)]
    assert keys(await claim(store, limit=2)) == wanted[:2]
    assert keys(await claim(store, limit=2)) == wanted[2:4]
    assert keys(await claim(store, limit=2)) == wanted[4:]


async def test_x1_a_session_claims_its_own_signals_and_an_owner_all(store: Store) -> None:
    mine = end_key((await ended(store)).id)
    other = end_key((await ended(store, scope=ADAS_OTHER_SESSION)).id)
    bobs = end_key((await ended(store, scope=BOB)).id)
    assert keys(await claim(store, scope=ADA)) == [mine]
    assert keys(await claim(store, scope=EVERY_SESSION_OF_ADA)) == [other]
    assert keys(await claim(store, scope=BOB)) == [bobs]


async def test_x1_two_consumers_never_hold_the_same_signal(
    store: Store, open_another: OpenAnother
) -> None:
    handles = [store, await open_another(), await open_another(), await open_another()]
    wanted = [end_key((await ended(store)).id) for _ in range(60)]
    claims = await asyncio.gather(
        *(claim(handles[number % 4], f"c{number}", limit=3) for number in range(30))
    )
    got = [key for claimed in claims for key in keys(claimed)]
    assert sorted(got) == sorted(wanted)


async def test_x1_a_lease_that_ran_out_frees_the_signal(
    store: Store, open_another: OpenAnother
) -> None:
    """The consumer died: another one gets it, under the same key."""
    other = await open_another()
    task = await ended(store)
    (first,) = await claim(store, "dies", lease_s=0.2)
    (again,) = await wait_until_async(lambda: claim(other, "lives"))
    assert (again.key, again.seq, again.tries) == (first.key, first.seq, 2)
    assert await claim(store, "third") == []
    assert (await the_signal(store, task.id)).state is SignalState.CLAIMED


async def test_x1_a_signal_is_not_given_away_before_its_lease_is_over(store: Store) -> None:
    await ended(store)
    began = clock.boot_now()
    assert len(await claim(store, "one", lease_s=0.3)) == 1
    await wait_until_async(lambda: claim(store, "two"))
    assert clock.boot_now() - began >= 0.3 * SECOND


async def test_x1_a_consumer_that_leaves_gives_back_what_it_did_not_deal_with(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    tasks = [await ended(store) for _ in range(3)]
    await claim(store, "one", limit=2)
    await claim(store, "two")
    await store.acknowledge([end_key(tasks[0].id)], ADA)
    assert await other.release_signals("one") == 1
    assert await other.release_signals("one") == 0
    assert await other.release_signals("nobody") == 0
    released = await the_signal(store, tasks[1].id)
    assert (released.state, released.tries) == (SignalState.PENDING, 0), "it was not tried"
    assert (await the_signal(store, tasks[0].id)).state is SignalState.DELIVERED
    assert (await the_signal(store, tasks[2].id)).state is SignalState.CLAIMED
    assert keys(await claim(store, "three")) == [end_key(tasks[1].id)]


# Acknowledging


async def test_x1_an_acknowledged_signal_is_delivered_and_final(store: Store) -> None:
    task = await ended(store)
    key = end_key(task.id)
    await claim(store)
    before = store.now()
    assert await store.acknowledge([key], ADA) == 1
    told = await the_signal(store, task.id)
    assert told.state is SignalState.DELIVERED
    assert told.delivered_at is not None
    assert before <= told.delivered_at <= store.now()
    assert await store.acknowledge([key], ADA) == 0
    assert await claim(store, "two", lease_s=0) == []
    assert await store.release_signals("one") == 0
    assert await store.delivery_failed(key, "late", 0) is False
    assert await store.drop_signal(key, "late") is False
    assert await the_signal(store, task.id) == told


async def test_x1_acknowledging_answers_how_many_were_new(store: Store) -> None:
    wanted = [end_key((await ended(store)).id) for _ in range(4)]
    bobs = end_key((await ended(store, scope=BOB)).id)
    assert await store.acknowledge([], ADA) == 0
    assert await store.acknowledge(["bg_none:end", bobs], ADA) == 0
    assert await store.acknowledge(wanted[:2], ADA) == 2
    assert await store.acknowledge([*wanted, wanted[3], bobs], ADA) == 2
    (untouched,) = await store.signals(BOB)
    assert untouched.state is SignalState.PENDING


async def test_x1_of_many_acknowledgements_at_once_one_is_the_first(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    key = end_key((await ended(store)).id)
    counts = await asyncio.gather(
        *((store if number % 2 else other).acknowledge([key], ADA) for number in range(20))
    )
    assert sorted(counts) == [0] * 19 + [1]


async def test_x1_what_was_not_claimed_can_be_acknowledged_too(store: Store) -> None:
    """It rode along with an answer."""
    key = end_key((await ended(store)).id)
    assert await store.acknowledge([key], EVERY_SESSION_OF_ADA) == 1
    assert await claim(store) == []


# Failing and dropping


async def test_x1_a_failed_delivery_is_tried_again_at_its_time(store: Store) -> None:
    task = await ended(store)
    await claim(store, "one")
    began = clock.boot_now()
    retry_at = store.now() + SECOND // 3
    assert await store.delivery_failed(end_key(task.id), "no answer", retry_at) is True
    failed = await the_signal(store, task.id)
    assert (failed.state, failed.reason, failed.tries) == (SignalState.FAILED, "no answer", 1)
    (again,) = await wait_until_async(lambda: claim(store, "two"))
    assert clock.boot_now() - began >= SECOND // 3 - SECOND // 100
    assert (again.key, again.tries, again.reason) == (end_key(task.id), 2, None)


async def test_x1_a_retry_that_is_due_is_claimed_at_once(store: Store) -> None:
    task = await ended(store)
    await claim(store, "one")
    await store.delivery_failed(end_key(task.id), "no answer", store.now())
    assert len(await claim(store, "two")) == 1


async def test_x1_a_retry_far_away_is_not_claimed(store: Store) -> None:
    task = await ended(store)
    await store.delivery_failed(end_key(task.id), "no answer", store.now() + 3600 * SECOND)
    assert await claim(store) == []
    assert await store.acknowledge([end_key(task.id)], ADA) == 1, "by another way"


async def test_x1_a_dropped_signal_keeps_its_reason_and_is_final(store: Store) -> None:
    task = await ended(store)
    key = end_key(task.id)
    await claim(store)
    assert await store.drop_signal(key, "stopped on purpose") is True
    dropped = await the_signal(store, task.id)
    assert (dropped.state, dropped.reason) == (SignalState.DROPPED, "stopped on purpose")
    assert dropped.delivered_at is None
    assert await store.drop_signal(key, "again") is False
    assert await store.acknowledge([key], ADA) == 0
    assert await store.delivery_failed(key, "late", 0) is False
    assert await claim(store, "two", lease_s=0) == []
    assert await the_signal(store, task.id) == dropped


async def test_an_unknown_key_changes_nothing(store: Store) -> None:
    await queued(store)
    assert await store.drop_signal("bg_none:end", "x") is False
    assert await store.delivery_failed("bg_none:end", "x", 0) is False
