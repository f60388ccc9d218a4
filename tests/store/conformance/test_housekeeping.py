"""E12: retention. What has ended can be forgotten, with all that belongs to it; nothing else."""

import asyncio
from collections.abc import Sequence

from backburner.model.clock import SECOND
from backburner.model.events import EventKind
from backburner.model.states import State
from backburner.model.task import Task
from backburner.store.protocol import Facts, Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ADAS_OTHER_SESSION,
    BOB,
    ENDINGS,
    EVERY_SESSION_OF_ADA,
    PLENTY,
    ended,
    new_task,
    queued,
    running,
)

LATER = 3600 * SECOND


async def test_e12_only_what_ended_before_a_time_is_prunable_oldest_first(store: Store) -> None:
    first, second = await ended(store), await ended(store)
    now = store.now() + SECOND
    assert await store.prunable(now, None, 10) == [first, second]
    assert await store.prunable(now, None, 1) == [first]
    assert second.finished_at is not None
    assert await store.prunable(second.finished_at, None, 10) == [first]
    assert await store.prunable(first.finished_at or 0, None, 10) == []


async def test_e12_what_is_active_or_left_something_running_is_never_prunable(
    store: Store,
) -> None:
    for make in (queued, running):
        await make(store)
    await ended(store, leftovers=1)
    assert await store.prunable(store.now() + LATER, None, 10) == []


async def test_e12_pruning_keeps_to_its_scope(store: Store) -> None:
    tasks = [await ended(store, scope=scope) for scope in (ADA, ADAS_OTHER_SESSION, BOB)]
    now = store.now() + LATER
    assert await store.prunable(now, None, 10) == tasks
    assert await store.prunable(now, EVERY_SESSION_OF_ADA, 10) == tasks[:2]
    assert await store.prunable(now, ADA, 10) == tasks[:1]


async def test_e12_a_forgotten_task_is_gone_with_its_events_and_signals(
    store: Store, open_another: OpenAnother
) -> None:
    gone, kept = await ended(store), await ended(store, ending=ENDINGS["exit"])
    assert await store.forget([gone.id, "bg_none"]) == 1
    assert await store.forget([gone.id]) == 0
    for handle in (store, await open_another()):
        assert await handle.get(gone.id) is None
        assert await handle.events(gone.id) == []
        assert [signal.task for signal in await handle.signals(ADA)] == [kept.id]
        assert {event.task for event in await handle.events_since(0)} == {kept.id}
        assert await handle.newest(ADA, limit=10) == [kept]


async def test_e12_an_active_task_is_never_forgotten(store: Store) -> None:
    tasks = [await queued(store), await running(store), await ended(store, leftovers=1)]
    assert await store.forget([task.id for task in tasks]) == 0
    for task in tasks:
        assert await store.get(task.id) == task
        assert len(await store.events(task.id)) == {State.QUEUED: 1, State.RUNNING: 2}.get(
            task.state, 3
        )
    await store.note(tasks[2].id, 1, EventKind.LEFTOVERS, Facts(leftovers=0))
    assert await store.forget([task.id for task in tasks]) == 1


async def test_e12_many_tasks_can_be_forgotten_at_once(store: Store) -> None:
    ids = [
        (await store.create(new_task(), limit=PLENTY, ending=ENDINGS["spawn"])).id
        for _ in range(50)
    ]
    assert await store.forget(ids) == 50
    assert await store.newest(ADA, limit=10) == []


async def test_e12_the_id_of_a_forgotten_task_is_free(store: Store) -> None:
    """A new task, not the old one: with events, a signal and an attempt of its own."""
    await ended(store, "build")
    await store.forget(["build"])
    again = await queued(store, "build", scope=BOB)
    assert (again.state, again.attempt, again.signal_state) == (State.QUEUED, 1, None)
    assert [event.kind for event in await store.events("build")] == [EventKind.CREATED]
    assert await store.signals(BOB) == []


async def test_e12_what_is_prunable_comes_in_pages(store: Store) -> None:
    tasks = [await ended(store) for _ in range(5)]
    now = store.now() + LATER
    first = await store.prunable(now, None, 2)
    second = await store.prunable(now, None, 2, after=first[-1])
    assert [*first, *second] == tasks[:4]
    await store.forget([task.id for task in tasks[:4]])
    assert await store.prunable(now, None, 2, after=second[-1]) == tasks[4:]
    assert await store.prunable(now, None, 2, after=tasks[4]) == []


async def test_e12_who_forgets_hears_what_is_gone_before_the_id_is_free(
    store: Store, open_another: OpenAnother
) -> None:
    """So that what belongs to the old task can be put away, and not what belongs to a new one."""
    another = await open_another()
    await ended(store, "build")
    await queued(store, "active")
    heard: list[str] = []
    free = asyncio.Event()
    loop = asyncio.get_running_loop()
    creating: list[asyncio.Task[Task]] = []

    async def use_again() -> Task:
        free.set()
        return await queued(another, "build")

    def gone(ids: Sequence[str]) -> None:
        loop.call_soon_threadsafe(lambda: creating.append(loop.create_task(use_again())))
        asyncio.run_coroutine_threadsafe(free.wait(), loop).result(10)
        heard.extend(ids)

    assert await store.forget(["build", "active", "none"], gone) == 1
    assert heard == ["build"]
    again = await creating[0]
    assert (again.attempt, again.state) == (1, State.QUEUED)


async def test_e12_ids_that_no_task_has(store: Store) -> None:
    await queued(store, "active")
    await ended(store, "ended")
    heard: list[str] = []
    await store.unknown(["active", "none", "ended", "nothing"], heard.extend)
    assert heard == ["none", "nothing"]
