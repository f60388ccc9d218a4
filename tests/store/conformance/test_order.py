"""X9: what may start and when: queues with a width, tasks after others, further attempts."""

import asyncio
from dataclasses import replace

import pytest

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.errors import LimitReached, NotFound
from backburner.model.events import EventKind
from backburner.model.order import LONGEST_RETRY_S, Order, Queue, Wait
from backburner.model.states import ErrorKind, Kind, State
from backburner.model.task import Place, Task
from backburner.store.protocol import Facts, Store
from tests.store.clocks import set_clock_of_record
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    BOB,
    ENDINGS,
    PLACE,
    PLENTY,
    ended,
    get,
    new_task,
    queued,
    running,
)

DAY = 86400 * clock.SECOND


async def ordered(store: Store, order: Order, kind: Kind = Kind.SHELL) -> Task:
    """A task with this order."""
    return await store.create(new_task(order=order, kind=kind), limit=PLENTY)


async def in_queue(store: Store, name: str = "q") -> Task:
    return await ordered(store, Order(queue=name))


async def to_start(store: Store) -> list[str]:
    """What a worker is given, in its order."""
    return [task.id for task in await store.waiting_for_keeper()]


async def claimed(store: Store, task: Task) -> Task:
    got = await store.claim(task.id, task.attempt, PLACE)
    assert got is not None
    return got


# Queues


async def test_x9_of_a_queue_only_so_many_are_to_be_started_the_oldest_first(store: Store) -> None:
    await store.set_queue("q", 2)
    tasks = [await in_queue(store) for _ in range(4)]
    other = await queued(store)
    assert await to_start(store) == [tasks[0].id, tasks[1].id, other.id]
    first = await claimed(store, tasks[0])
    assert await to_start(store) == [tasks[1].id, other.id]
    await claimed(store, tasks[1])
    assert await to_start(store) == [other.id]
    await store.finish(first.id, 1, ENDINGS["exit"])
    assert await to_start(store) == [tasks[2].id, other.id]


async def test_x9_a_claim_above_the_width_changes_nothing(store: Store) -> None:
    await store.set_queue("q", 1)
    first, second = [await in_queue(store) for _ in range(2)]
    await claimed(store, first)
    events = await store.last_event()
    assert await store.claim(second.id, 1, PLACE) is None
    assert (await get(store, second.id)).state is State.QUEUED
    assert await store.last_event() == events


async def test_x9_one_that_asks_keeps_its_place(store: Store) -> None:
    await store.set_queue("q", 1)
    first, second = [await in_queue(store) for _ in range(2)]
    await claimed(store, first)
    await store.ask(first.id, 1, "q1", "really?")
    assert await to_start(store) == []
    assert await store.claim(second.id, 1, PLACE) is None


async def test_x9_the_width_holds_against_many_claims_at_once(
    store: Store, open_another: OpenAnother
) -> None:
    handles = [store, await open_another(), await open_another(), await open_another()]
    await store.set_queue("q", 3)
    tasks = [await in_queue(store) for _ in range(20)]
    claims = await asyncio.gather(
        *(
            handles[number % 4].claim(task.id, 1, Place("boot-1", 1, number))
            for number, task in enumerate(tasks)
        )
    )
    assert sum(claim is not None for claim in claims) == 3
    assert await store.queues() == [Queue("q", 3, waiting=17, running=3)]


async def test_x9_a_paused_queue_starts_nothing_and_lets_run_what_runs(store: Store) -> None:
    await store.set_queue("q", 2)
    first, second = [await in_queue(store) for _ in range(2)]
    await claimed(store, first)
    assert await store.pause_queue("q", paused=True)
    assert await store.queues() == [Queue("q", 2, paused=True, waiting=1, running=1)]
    assert await to_start(store) == []
    assert await store.claim(second.id, 1, PLACE) is None
    assert await store.pause_queue("q", paused=False)
    assert await to_start(store) == [second.id]
    assert not await store.pause_queue("none", paused=True)


async def test_x9_another_width_changes_neither_the_pause_nor_what_runs(store: Store) -> None:
    await store.set_queue("q", 3)
    tasks = [await in_queue(store) for _ in range(3)]
    for task in tasks:
        await claimed(store, task)
    await store.pause_queue("q", paused=True)
    await store.set_queue("q", 1)
    assert await store.queues() == [Queue("q", 1, paused=True, waiting=0, running=3)]


async def test_x9_an_unknown_queue_is_refused_with_the_known_ones(store: Store) -> None:
    with pytest.raises(NotFound, match=r"no queue 'q'.*backburner queue set"):
        await in_queue(store)
    await store.set_queue("build", 1)
    await store.set_queue("audio", 1)
    with pytest.raises(NotFound, match="audio, build"):
        await in_queue(store)
    assert await store.newest(ADA, limit=9) == []


async def test_x9_a_queue_in_use_is_not_removed_and_nothing_changes(store: Store) -> None:
    await store.set_queue("q", 1)
    done = await in_queue(store)
    await claimed(store, done)
    await store.finish(done.id, 1, ENDINGS["succeeded"])
    waiting = await in_queue(store)
    assert not await store.remove_queue("q")
    assert (await get(store, done.id)).queue == "q"
    await claimed(store, waiting)
    assert not await store.remove_queue("q")
    await store.finish(waiting.id, 1, ENDINGS["succeeded"])
    assert await store.remove_queue("q")
    assert await store.queues() == []
    assert (await get(store, done.id)).queue is None
    assert not await store.remove_queue("q")


async def test_x9_what_waits_in_queues_has_a_limit_of_its_own(store: Store) -> None:
    await store.set_queue("q", 1)
    wanted = [new_task(order=Order(queue="q")) for _ in range(3)]
    for task in wanted[:2]:
        await store.create(task, limit=2)
    with pytest.raises(LimitReached, match="2 tasks waiting in queues"):
        await store.create(wanted[2], limit=2)
    await store.create(new_task(), limit=1)  # one that waits in a queue is not in its way
    await store.create(new_task(scope=BOB, order=Order(queue="q")), limit=2)


# After others


async def test_x9_what_comes_after_others_waits_for_all_of_them(store: Store) -> None:
    first, second = await running(store), await running(store)
    task = await ordered(store, Order(after=(first.id, second.id)))
    assert (task.after, task.after_failure) == ((first.id, second.id), False)
    assert await to_start(store) == []
    await store.finish(first.id, 1, ENDINGS["succeeded"])
    assert await to_start(store) == []
    await store.finish(second.id, 1, ENDINGS["succeeded"])
    assert await to_start(store) == [task.id]


@pytest.mark.parametrize("ending", ["exit", "canceled", "timeout"])
async def test_x9_what_waits_in_vain_is_given_to_the_worker_at_once(
    store: Store, ending: str
) -> None:
    """Also while another one still runs, and from a queue that is full or paused."""
    await store.set_queue("q", 1)
    await store.pause_queue("q", paused=True)
    first, second = await running(store), await running(store)
    task = await ordered(store, Order(queue="q", after=(first.id, second.id)))
    anyway = await ordered(store, Order(after=(first.id, second.id), after_failure=True))
    await store.finish(first.id, 1, ENDINGS[ending])
    assert await to_start(store) == [task.id]
    await store.finish(second.id, 1, ENDINGS["succeeded"])
    assert await to_start(store) == [task.id, anyway.id]


async def test_x9_what_another_waits_for_is_not_forgotten(store: Store) -> None:
    before, after = await ended(store), await ended(store)
    task = await ordered(store, Order(after=(before.id,)))
    later = store.now() + DAY
    assert [each.id for each in await store.prunable(later, None, 9)] == [after.id]
    assert await store.forget([before.id]) == 0
    await claimed(store, task)
    assert {each.id for each in await store.prunable(later, None, 9)} == {before.id, after.id}
    assert await store.forget([before.id]) == 1


# Further attempts


async def test_x9_a_failed_try_is_one_attempt_on_and_waits(store: Store) -> None:
    task = await claimed(store, await ordered(store, Order(retries=2)))
    await store.note(task.id, 1, EventKind.DETAIL, Facts(detail="halfway", ready=True))
    due = store.now() + 60 * clock.SECOND
    again = await store.fail_try(task.id, 1, Ending.exited(3), due)
    assert again is not None
    assert again == replace(
        task,
        state=State.QUEUED,
        attempt=2,
        retries_left=1,
        failures=1,
        not_before=due,
        started_at=None,
        place=None,
    )
    assert await store.get(task.id) == replace(again, wait=Wait(not_before=due))
    assert await to_start(store) == []
    assert await store.next_due() == due
    last = (await store.events(task.id))[-1]
    assert last.kind is EventKind.FAILED_TRY
    assert (last.data["attempt"], last.data["error"]["message"]) == (1, "exit code 3")
    assert await store.signals(ADA) == [], "only the end is told"


async def test_x9_at_its_time_it_is_to_be_started_and_then_runs_anew(store: Store) -> None:
    task = await claimed(store, await ordered(store, Order(retries=1)))
    await store.fail_try(task.id, 1, Ending.exited(3), store.now() - 1)
    assert await store.next_due() is None
    assert await to_start(store) == [task.id]
    assert await store.claim(task.id, 1, PLACE) is None, "the old attempt is fenced off"
    assert await store.claim(task.id, 2, PLACE) is not None
    assert await store.fail_try(task.id, 2, Ending.exited(3), 0) is None, "none is left"
    done = await store.finish(task.id, 2, Ending.exited(3))
    assert done is not None
    assert (done.failures, done.retries_left) == (1, 0)


async def test_x9_a_clock_that_is_set_back_delays_a_try_by_no_more_than_the_longest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await claimed(store, await ordered(store, Order(retries=1)))
    await store.fail_try(task.id, 1, Ending.exited(3), store.now() + 5 * clock.SECOND)
    set_clock_of_record(monkeypatch, -DAY)
    assert await to_start(store) == [task.id]
    longest = round(LONGEST_RETRY_S * clock.SECOND)
    set_clock_of_record(monkeypatch, 10 * clock.SECOND - longest)
    assert await to_start(store) == []


async def test_x9_what_was_asked_to_stop_is_not_tried_again(store: Store) -> None:
    task = await claimed(store, await ordered(store, Order(retries=5)))
    await store.request_stop(task.id, ADA, 5)
    before = await get(store, task.id)
    assert await store.fail_try(task.id, 1, Ending.exited(3), 0) is None
    assert await get(store, task.id) == before


async def test_x9_a_stop_while_it_waits_for_its_next_try_ends_it(store: Store) -> None:
    task = await claimed(store, await ordered(store, Order(retries=5)))
    await store.fail_try(task.id, 1, Ending.exited(3), store.now() + DAY)
    stopped = await store.request_stop(task.id, ADA, 5)
    assert stopped is not None
    assert (stopped.state, stopped.attempt) == (State.CANCELED, 2)
    assert await store.next_due() is None
    assert not await store.any_active()


@pytest.mark.parametrize("attempt", [0, 2])
async def test_x9_a_failed_try_is_guarded_by_attempt_and_state(store: Store, attempt: int) -> None:
    task = await ordered(store, Order(retries=1))
    assert await store.fail_try(task.id, 1, Ending.exited(3), 0) is None, "it does not run"
    await claimed(store, task)
    before = await get(store, task.id)
    assert await store.fail_try(task.id, attempt, Ending.exited(3), 0) is None
    assert await get(store, task.id) == before


async def test_x9_a_question_of_a_failed_try_needs_no_answer(store: Store) -> None:
    task = await claimed(store, await ordered(store, Order(retries=1)))
    await store.ask(task.id, 1, "q1", "really?")
    await store.fail_try(task.id, 1, Ending.failed(ErrorKind.KILLED, "SIGKILL"), store.now())
    (signal,) = await store.signals(ADA)
    assert signal.state.value == "dropped"
    assert await store.answer(task.id, ADA, "yes") is None


async def test_x9_a_further_try_waits_for_its_place_like_any_other(store: Store) -> None:
    await store.set_queue("q", 1)
    first = await ordered(store, Order(queue="q", retries=1))
    second = await in_queue(store)
    await claimed(store, first)
    await store.fail_try(first.id, 1, Ending.exited(3), store.now() + DAY // 1000)
    assert await to_start(store) == [second.id], "its place is free meanwhile"
    await claimed(store, second)
    assert await store.claim(first.id, 2, PLACE) is None


# What a person is told


async def test_x9_waits_say_what_keeps_a_task(store: Store) -> None:
    await store.set_queue("q", 1)
    before = await running(store)
    runs, second, third = [await in_queue(store) for _ in range(3)]
    after = await ordered(store, Order(queue="q", after=(before.id,)))
    fourth = await in_queue(store)
    await claimed(store, runs)
    plain = await queued(store)
    assert await store.waits() == {
        second.id: Wait(queue="q", place=1),
        third.id: Wait(queue="q", place=2),
        after.id: Wait(after=(before.id,), queue="q"),
        fourth.id: Wait(queue="q", place=3),
    }
    assert (await get(store, fourth.id)).wait == Wait(queue="q", place=3)
    waits = {task.id: task.wait for task in await store.newest(ADA, limit=9)}
    assert waits[third.id] == Wait(queue="q", place=2)
    assert waits[plain.id] is None
    await store.pause_queue("q", paused=True)
    await store.finish(runs.id, 1, ENDINGS["succeeded"])
    assert (await get(store, second.id)).wait == Wait(queue="q", paused=True, place=1)
    await store.pause_queue("q", paused=False)
    assert (await get(store, second.id)).wait is None, "it is about to start"


async def test_any_active_says_whether_anyone_is_needed(store: Store) -> None:
    assert not await store.any_active()
    task = await queued(store)
    assert await store.any_active()
    await store.request_stop(task.id, ADA, 1)
    assert not await store.any_active()
    await ended(store, leftovers=2)
    assert await store.any_active()
