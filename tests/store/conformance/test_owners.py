"""X10: what goes first, and how many tasks of an owner run at once, on all machines together."""

import asyncio
from dataclasses import replace

import pytest

from backburner.model.errors import LimitReached, UsageError
from backburner.model.order import HIGHEST, LOWEST, Order, OwnerLimit, Wait
from backburner.model.states import Kind, State
from backburner.model.task import Place, Task
from backburner.store.protocol import Scope, Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ADAS_OTHER_SESSION,
    BOB,
    ENDINGS,
    PLACE,
    PLENTY,
    get,
    new_task,
    queued,
    running,
)
from tests.store.conformance.test_order import claimed, to_start


async def wanted(store: Store, priority: int, **order: object) -> Task:
    """A task of this priority."""
    given = Order(priority=priority, **order)  # type: ignore[arg-type]
    return await store.create(new_task(order=given), limit=PLENTY)


# Priorities


async def test_x10_the_highest_priority_goes_first_then_the_oldest(store: Store) -> None:
    usual, low, high, also_high = [await wanted(store, n) for n in (0, LOWEST, HIGHEST, HIGHEST)]
    assert await to_start(store) == [high.id, also_high.id, usual.id, low.id]
    assert (await get(store, high.id)).priority == HIGHEST


async def test_x10_places_in_a_queue_go_by_priority(store: Store) -> None:
    await store.set_queue("q", 1)
    first, low, high = [await wanted(store, n, queue="q") for n in (0, -1, 5)]
    assert await to_start(store) == [high.id]
    await claimed(store, high)
    assert await to_start(store) == []
    assert await store.waits() == {
        first.id: Wait(queue="q", place=1),
        low.id: Wait(queue="q", place=2),
    }
    await store.finish(high.id, 1, ENDINGS["succeeded"])
    assert await to_start(store) == [first.id]


async def test_x10_a_further_attempt_keeps_its_priority(store: Store) -> None:
    task = await wanted(store, 3, retries=1)
    usual = await queued(store)
    await claimed(store, task)
    again = await store.fail_try(task.id, 1, ENDINGS["exit"], store.now() - 1)
    assert again is not None
    assert again.priority == 3
    assert await to_start(store) == [task.id, usual.id]


async def test_x10_a_run_that_begins_at_once_has_its_priority_too(store: Store) -> None:
    new = new_task(kind=Kind.TOOL, order=Order(priority=7))
    task, _ = await store.begin(new, Place("boot-1", 1, worker="w"), limit=1)
    assert task.priority == 7
    assert await get(store, task.id) == task
    again = await store.requeue(task.id, 1, "its application has died")
    assert again is not None
    usual = await queued(store, kind=Kind.TOOL)
    assert [each.id for each in await store.waiting_for_application()] == [task.id, usual.id]


@pytest.mark.parametrize("priority", [LOWEST - 1, HIGHEST + 1, True, 1.0, "1", None])
def test_x10_what_is_no_priority_is_refused(priority: object) -> None:
    with pytest.raises(UsageError, match="-10 to 10"):
        Order(priority=priority)  # type: ignore[arg-type]


# Limits of owners


async def test_x10_of_an_owner_only_so_many_run(store: Store) -> None:
    await store.set_owner_limit("ada", 2)
    scopes = (ADA, ADAS_OTHER_SESSION, ADA)
    first, second, third = [await queued(store, scope=scope) for scope in scopes]
    other = await queued(store, scope=BOB)
    assert await to_start(store) == [first.id, second.id, other.id]
    await claimed(store, first)
    await claimed(store, second)
    assert await to_start(store) == [other.id]
    events = await store.last_event()
    assert await store.claim(third.id, 1, PLACE) is None
    assert await store.last_event() == events
    assert (await get(store, third.id)).wait == Wait(owner_limit=2)
    assert await store.owner_limits() == [OwnerLimit("ada", 2, running=2, waiting=1)]
    await store.finish(first.id, 1, ENDINGS["exit"])
    assert await to_start(store) == [third.id, other.id]
    assert (await get(store, third.id)).wait is None


async def test_x10_one_that_asks_counts_and_one_that_ended_does_not(store: Store) -> None:
    await store.set_owner_limit("ada", 1)
    first, second = await running(store), await queued(store)
    await store.ask(first.id, 1, "q1", "really?")
    assert await store.claim(second.id, 1, PLACE) is None
    await store.finish(first.id, 1, ENDINGS["exit"], leftovers=3)
    assert await store.claim(second.id, 1, PLACE) is not None


async def test_x10_a_limit_for_all_others_gives_way_to_one_of_their_own(store: Store) -> None:
    await store.set_owner_limit(None, 1)
    await store.set_owner_limit("ada", 2)
    for scope in (ADA, ADA, BOB):
        await running(store, scope=scope)
    more = [await queued(store, scope=scope) for scope in (ADA, BOB, Scope("eve", "chat"))]
    assert await to_start(store) == [more[2].id]
    await store.set_owner_limit("ada", None)
    assert await to_start(store) == [more[2].id], "now the one for all others holds"
    await store.set_owner_limit(None, None)
    assert await to_start(store) == [task.id for task in more]
    assert await store.owner_limits() == []
    await store.set_owner_limit("ada", None)  # there is none


async def test_x10_a_lower_limit_ends_nothing(store: Store) -> None:
    tasks = [await running(store) for _ in range(3)]
    waiting = await queued(store)
    await store.set_owner_limit("ada", 1)
    for task in tasks:
        assert (await get(store, task.id)).state is State.RUNNING
        assert await to_start(store) == []
        await store.finish(task.id, 1, ENDINGS["exit"])
    assert await to_start(store) == [waiting.id]


async def test_x10_an_owner_at_its_limit_keeps_no_place_in_a_queue(store: Store) -> None:
    await store.set_queue("q", 2)
    await store.set_owner_limit("ada", 1)
    await running(store)
    in_queue = new_task(order=Order(queue="q"))
    await store.create(in_queue, limit=PLENTY)
    other = await store.create(replace(new_task(order=Order(queue="q")), owner="bob"), limit=PLENTY)
    assert await to_start(store) == [other.id]


async def test_x10_a_run_above_the_limit_is_refused_and_a_parked_call_goes_on(store: Store) -> None:
    await store.set_owner_limit("ada", 1)
    place = Place("boot-1", 1, worker="w")
    await store.begin(new_task(kind=Kind.TOOL), place, limit=9)
    one_more = new_task(kind=Kind.TOOL)
    with pytest.raises(LimitReached, match="'ada' has 1 running tasks, and 1 is the limit"):
        await store.begin(one_more, place, limit=9)
    assert await store.get(one_more.id) is None
    await store.begin(new_task(kind=Kind.TOOL, scope=BOB), place, limit=9)
    await store.begin(new_task(kind=Kind.TOOL), place, limit=9, parked=True)


async def test_x10_the_limit_of_an_owner_holds_against_many_at_once(
    store: Store, open_another: OpenAnother
) -> None:
    handles = [store, await open_another(), await open_another(), await open_another()]
    await store.set_owner_limit("ada", 5)
    tasks = [await queued(store) for _ in range(20)]
    new = [new_task(kind=Kind.TOOL) for _ in range(20)]
    place = Place("boot-1", 1, worker="w")
    claims = [handles[n % 4].claim(task.id, 1, PLACE) for n, task in enumerate(tasks)]
    begins = [handles[n % 4].begin(each, place, limit=PLENTY) for n, each in enumerate(new)]
    answers = await asyncio.gather(*claims, *begins, return_exceptions=True)
    refused = [each for each in answers if isinstance(each, BaseException)]
    assert all(isinstance(each, LimitReached) for each in refused)
    assert len(answers) - len(refused) - answers.count(None) == 5
    assert (await store.owner_limits())[0].running == 5
