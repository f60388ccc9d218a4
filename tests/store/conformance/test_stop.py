"""Asking for the end of a task: recorded once, obeyed by a worker, and by nobody else's leave."""

import asyncio
from dataclasses import replace

import pytest

from backburner.model.events import EventKind
from backburner.model.signals import SignalKind
from backburner.model.states import State
from backburner.model.task import StopRequest
from backburner.store.protocol import Facts, Scope, Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ENDINGS,
    EVERY_SESSION_OF_ADA,
    PLACE,
    STRANGERS,
    ended,
    get,
    new_task,
    queued,
    running,
)


async def test_a4_a_queued_task_is_canceled_at_once(store: Store) -> None:
    task = await queued(store)
    stopped = await store.request_stop(task.id, ADA, 5.0)
    assert stopped is not None
    assert (stopped.state, stopped.error, stopped.started_at) == (State.CANCELED, None, None)
    assert await store.get(task.id) == stopped
    assert await store.claim(task.id, 1, PLACE) is None
    (signal,) = await store.signals(ADA)
    assert (signal.task, signal.kind) == (task.id, SignalKind.CANCELED)


async def test_a4_a_running_task_is_asked_and_goes_on(store: Store) -> None:
    task = await running(store)
    before = store.now()
    asked = await store.request_stop(task.id, ADA, 5.0)
    assert asked is not None
    assert asked.stop is not None
    assert before <= asked.stop.at <= store.now()
    assert asked == replace(task, stop=StopRequest(asked.stop.at, 5.0))
    assert await store.get(task.id) == asked
    assert [waiting.id for waiting in await store.waiting_for_keeper()] == [task.id]
    event = (await store.events(task.id))[-1]
    assert (event.kind, event.data) == (EventKind.STOP_REQUESTED, {"grace_s": 5.0})
    assert await store.signals(ADA) == [], "it has not ended yet"


async def test_a4_a_stop_that_came_too_late_gives_the_real_ending(store: Store) -> None:
    task = await running(store)
    await store.request_stop(task.id, ADA, 5.0)
    done = await store.finish(task.id, 1, ENDINGS["succeeded"])
    assert done is not None
    assert done.state is State.SUCCEEDED
    again = await store.request_stop(task.id, ADA, 0.0)
    assert again == done


@pytest.mark.parametrize("name", ENDINGS)
async def test_a4_a_finished_task_is_unchanged_and_comes_back(store: Store, name: str) -> None:
    task = await ended(store, ending=ENDINGS[name])
    last = await store.last_event()
    assert await store.request_stop(task.id, ADA, 0.0) == task
    assert await store.get(task.id) == task
    assert await store.last_event() == last
    assert await store.waiting_for_keeper() == []


async def test_x2_what_a_finished_task_left_behind_is_asked_to_end(store: Store) -> None:
    task = await ended(store, leftovers=2)
    assert await store.waiting_for_keeper() == []
    asked = await store.request_stop(task.id, ADA, 5.0)
    assert asked is not None
    assert asked.stop is not None
    assert (asked.state, asked.leftovers) == (State.SUCCEEDED, 2)
    assert asked.finished_at == task.finished_at
    assert [waiting.id for waiting in await store.waiting_for_keeper()] == [task.id]
    assert len(await store.signals(ADA)) == 1, "it was told of before"
    await store.note(task.id, 1, EventKind.LEFTOVERS, Facts(leftovers=0))
    assert await store.waiting_for_keeper() == []


@pytest.mark.parametrize(
    ("graces", "kept"),
    [
        ([5.0, 0.0], 0.0),  # now a forced one
        ([5.0, 2.0, 3.0], 2.0),
        ([0.0, 5.0], 0.0),
        ([5.0, 5.0], 5.0),
    ],
)
async def test_a4_the_most_urgent_request_counts(
    store: Store, graces: list[float], kept: float
) -> None:
    task = await running(store)
    for grace_s in graces:
        assert await store.request_stop(task.id, ADA, grace_s) is not None
    after = await get(store, task.id)
    assert after.stop is not None
    assert after.stop.grace_s == kept
    asked = [e for e in await store.events(task.id) if e.kind is EventKind.STOP_REQUESTED]
    told = [event.data["grace_s"] for event in asked]
    assert told == sorted(set(told), reverse=True), "an event for each that changed something"
    assert told[-1] == kept
    assert after.stop.at <= asked[0].at, "the time of the first request stays"


@pytest.mark.parametrize("state", ["queued", "running", "ended", "lingering"])
@pytest.mark.parametrize("scope", STRANGERS, ids=str)
async def test_a4_to_a_stranger_there_is_no_such_task(
    store: Store, state: str, scope: Scope
) -> None:
    if state == "lingering":
        task = await ended(store, leftovers=1)
    else:
        task = await {"queued": queued, "running": running, "ended": ended}[state](store)
    last = await store.last_event()
    assert await store.request_stop(task.id, scope, 0.0) is None
    assert await store.get(task.id) == task
    assert await store.last_event() == last


async def test_a4_an_unknown_task_cannot_be_stopped(store: Store) -> None:
    assert await store.request_stop("bg_none", ADA, 5.0) is None


async def test_an_owner_may_stop_from_every_session(store: Store) -> None:
    task = await queued(store)
    stopped = await store.request_stop(task.id, EVERY_SESSION_OF_ADA, 5.0)
    assert stopped is not None
    assert stopped.state is State.CANCELED


async def test_x2_a_stop_and_a_claim_at_once_leave_nothing_unstopped(
    store: Store, open_another: OpenAnother
) -> None:
    """Either it never runs, or its worker is told to end it."""
    other = await open_another()
    for number in range(40):
        task = await queued(store)
        first, second = (store, other) if number % 2 else (other, store)
        claimed, stopped = await asyncio.gather(
            first.claim(task.id, 1, PLACE), second.request_stop(task.id, ADA, 5.0)
        )
        assert stopped is not None
        after = await get(store, task.id)
        if claimed is None:
            assert after.state is State.CANCELED
        else:
            assert after.state is State.RUNNING
            assert after.stop is not None
            assert task.id in [w.id for w in await store.waiting_for_keeper()]


async def test_a_stop_is_seen_however_many_wait_to_be_started(store: Store) -> None:
    """A worker looks at a bounded number of tasks at a time."""
    new = [new_task(f"waits{number}") for number in range(1005)]
    await asyncio.gather(*(store.create(task, limit=10**6) for task in new))
    last = await running(store)
    await store.request_stop(last.id, ADA, 5.0)
    found = await store.waiting_for_keeper()
    assert found[0].id == last.id
    assert len(found) == 1000
