"""Events: numbered for each task without gaps, and in one order for a stream over everything."""

import asyncio

from backburner.model.events import EventKind
from backburner.model.task import EndedFor
from backburner.store.protocol import Facts, Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ENDINGS,
    PLACE,
    ended,
    queued,
    running,
)


async def test_the_events_of_a_whole_life(store: Store) -> None:
    before = store.now()
    task = await running(store)
    await store.requeue(task.id, 1, "again")
    await store.claim(task.id, 2, PLACE)
    await store.note(task.id, 2, EventKind.DETAIL, Facts(detail="x"))
    await store.request_stop(task.id, ADA, 5.0)
    await store.begin_ending(task.id, 2, EndedFor.STOP)
    await store.finish(task.id, 2, ENDINGS["exit"], leftovers=1)
    await store.note(task.id, 2, EventKind.LEFTOVERS, Facts(leftovers=0))
    events = await store.events(task.id)
    assert [(event.number, event.kind, event.data) for event in events] == [
        (1, EventKind.CREATED, {}),
        (2, EventKind.STARTED, {"attempt": 1}),
        (3, EventKind.REQUEUED, {"attempt": 2, "reason": "again"}),
        (4, EventKind.STARTED, {"attempt": 2}),
        (5, EventKind.DETAIL, {"detail": "x"}),
        (6, EventKind.STOP_REQUESTED, {"grace_s": 5.0}),
        (7, EventKind.ENDING, {"reason": "stop"}),
        (
            8,
            EventKind.FINISHED,
            {
                "state": "failed",
                "exit_code": 3,
                "error": {"kind": "exit", "message": "exit code 3"},
                "leftovers": 1,
            },
        ),
        (9, EventKind.LEFTOVERS, {"leftovers": 0}),
    ]
    assert {event.task for event in events} == {task.id}
    assert all(before <= event.at <= store.now() for event in events)


async def test_a_stream_over_one_task_resumes_after_a_number(store: Store) -> None:
    task = await running(store)
    for number in range(8):
        await store.note(task.id, 1, EventKind.DETAIL, Facts(detail=str(number)))
    seen: list[int] = []
    while page := await store.events(task.id, after=seen[-1] if seen else 0, limit=3):
        seen += [event.number for event in page]
    assert seen == list(range(1, 11))
    assert await store.events(task.id, after=10) == []


async def test_a_stream_over_everything_resumes_after_a_position(store: Store) -> None:
    for _ in range(5):
        await ended(store)
    seen = await store.events_since(0, limit=4)
    while page := await store.events_since(seen[-1].seq, limit=4):
        seen += page
    assert len(seen) == 15
    assert [event.seq for event in seen] == sorted({event.seq for event in seen})
    assert await store.last_event() == seen[-1].seq


async def test_events_of_concurrent_changes_have_no_gaps(
    store: Store, open_another: OpenAnother
) -> None:
    handles = [store, await open_another(), await open_another()]
    tasks = [await running(store) for _ in range(4)]
    await asyncio.gather(
        *(
            handles[number % 3].note(task.id, 1, EventKind.DETAIL, Facts(detail=str(number)))
            for number in range(25)
            for task in tasks
        )
    )
    for task in tasks:
        events = await store.events(task.id)
        assert [event.number for event in events] == list(range(1, 28))
        assert [event.seq for event in events] == sorted(event.seq for event in events)
        assert len({event.data.get("detail") for event in events[2:]}) == 25
    everything = await store.events_since(0)
    assert len({event.seq for event in everything}) == len(everything) == 4 * 27


async def test_a_change_that_was_refused_leaves_no_gap(store: Store) -> None:
    task = await running(store)
    for _ in range(3):
        await store.claim(task.id, 1, PLACE)
        await store.note(task.id, 9, EventKind.DETAIL, Facts(detail="stale"))
    await store.finish(task.id, 1, ENDINGS["exit"])
    assert [event.number for event in await store.events(task.id)] == [1, 2, 3]


async def test_a_position_never_comes_twice_also_after_a_prune(store: Store) -> None:
    """A stream that resumes after it would miss what is new."""
    task = await ended(store)
    last = await store.last_event()
    assert await store.forget([task.id]) == 1
    assert await store.events_since(0) == []
    await queued(store, task.id)
    (event,) = await store.events_since(last)
    assert (event.task, event.number, event.kind) == (task.id, 1, EventKind.CREATED)
