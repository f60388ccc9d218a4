"""Runs in applications: begun in one go, counted, parked, fenced; and their workers."""

import asyncio

import pytest

from backburner.model.ending import Ending
from backburner.model.errors import Conflict, LimitReached
from backburner.model.events import EventKind
from backburner.model.states import Kind, State
from backburner.model.task import NewTask, Place
from backburner.model.worker import Worker
from backburner.store.protocol import Scope, Store

HERE = Place("boot", 1, 5, worker="wk_1")
SCOPE = Scope("local", "s")


def new(task_id: str = "bg_1", **spec: object) -> NewTask:
    return NewTask(task_id, "local", "s", Kind.TOOL, "title", {"tool": "t", **spec})


async def test_a_run_is_written_and_runs_in_one_go(store: Store) -> None:
    task, fresh = await store.begin(new(), HERE, limit=5)
    assert fresh
    assert await store.get("bg_1") == task
    assert (task.state, task.place, task.attempt) == (State.RUNNING, HERE, 1)
    assert [event.kind for event in await store.events("bg_1")] == [
        EventKind.CREATED, EventKind.STARTED,
    ]  # fmt: skip


async def test_the_same_id_gives_the_run_that_is_there(store: Store) -> None:
    await store.begin(new(), HERE, limit=1)
    again, fresh = await store.begin(new(), HERE, limit=1)
    assert (again.id, fresh) == ("bg_1", False)
    with pytest.raises(Conflict):
        await store.begin(new(other=1), HERE, limit=1)
    assert len(await store.events("bg_1")) == 2


async def test_e3_no_more_than_the_limit_begin_at_once(store: Store) -> None:
    begun = await asyncio.gather(
        *(store.begin(new(f"bg_{n}"), HERE, limit=3) for n in range(8)), return_exceptions=True
    )
    refused = [each for each in begun if isinstance(each, LimitReached)]
    assert len(refused) == 5
    assert "3 is the limit" in str(refused[0])
    first = next(each[0] for each in begun if not isinstance(each, BaseException))
    await store.finish(first.id, 1, Ending.succeeded())
    assert (await store.begin(new("bg_next"), HERE, limit=3))[1]


async def test_d7_parked_calls_are_counted_apart(store: Store) -> None:
    await store.begin(new("bg_1"), HERE, limit=1)
    parked, _ = await store.begin(new("bg_2"), HERE, limit=None, parked=True)
    assert parked.parked_at is not None
    assert await store.parked(SCOPE) == 1
    assert await store.parked(Scope("local", "other")) == 0
    with pytest.raises(LimitReached):
        await store.begin(new("bg_3"), HERE, limit=1)
    await store.finish("bg_1", 1, Ending.succeeded())
    assert (await store.begin(new("bg_3"), HERE, limit=1))[1], "the parked one does not count"
    await store.finish("bg_2", 1, Ending.canceled())
    assert await store.parked(SCOPE) == 0


async def test_d2_a_recorded_call_is_parked_later(store: Store) -> None:
    await store.begin(new(), HERE, limit=None)
    parked = await store.park("bg_1", 1)
    assert parked is not None
    assert parked.parked_at is not None
    assert await store.park("bg_1", 2) is None
    assert [event.kind for event in await store.events("bg_1")][-1] is EventKind.PARKED


async def test_e11_a_run_that_is_taken_from_its_worker_is_fenced_off(store: Store) -> None:
    await store.begin(new(), HERE, limit=5)
    again = await store.requeue("bg_1", 1, "it died", hand_over="0+1")
    assert again is not None
    assert (again.state, again.attempt, again.place, again.hand_over) == (
        State.QUEUED, 2, None, "0+1",
    )  # fmt: skip
    assert await store.finish("bg_1", 1, Ending.succeeded(result="stale")) is None
    assert await store.waiting_for_application() == [], "the keeper can start it"
    claimed = await store.claim("bg_1", 2, Place("boot", 2, 6, worker="wk_2"))
    assert claimed is not None
    assert await store.tasks_of_worker("wk_1") == []
    assert [task.id for task in await store.tasks_of_worker("wk_2")] == ["bg_1"]
    assert await store.waiting_for_application() == []


async def test_e11_what_the_keeper_cannot_start_waits_for_an_application(store: Store) -> None:
    await store.begin(new(), HERE, limit=5)
    await store.requeue("bg_1", 1, "it died")
    assert [task.id for task in await store.waiting_for_application()] == ["bg_1"]


async def test_workers_are_known_with_and_without_a_row_of_their_own(store: Store) -> None:
    await store.register_worker(Worker("wk_2", "boot", 6))
    await store.register_worker(Worker("wk_2", "boot", 6, "0+4096"))
    await store.begin(new(), HERE, limit=5)
    assert sorted(await store.workers(), key=lambda each: each.id) == [
        Worker("wk_1", "boot", 5), Worker("wk_2", "boot", 6, "0+4096"),
    ]  # fmt: skip
    assert await store.remove_worker("wk_2")
    assert not await store.remove_worker("wk_2")
    await store.finish("bg_1", 1, Ending.succeeded())
    assert await store.workers() == []


async def test_e7_a_worker_hears_of_stops_of_its_own_runs_only(store: Store) -> None:
    await store.begin(new("bg_1"), HERE, limit=5)
    await store.begin(new("bg_2"), Place("boot", 1, 6, worker="wk_2"), limit=5)
    for task_id in ("bg_1", "bg_2"):
        await store.request_stop(task_id, SCOPE, 2.0)
    stops = await store.stops_of_worker("wk_1")
    assert [(task_id, stop.grace_s) for task_id, stop in stops.items()] == [("bg_1", 2.0)]
    await store.finish("bg_1", 1, Ending.canceled())
    assert await store.stops_of_worker("wk_1") == {}


async def test_what_a_model_has_used_is_kept_with_the_end(store: Store) -> None:
    await store.begin(new(), HERE, limit=5)
    done = await store.finish("bg_1", 1, Ending.succeeded(), usage={"input_tokens": 12})
    assert done is not None
    assert done.usage == {"input_tokens": 12}
    found = await store.get("bg_1")
    assert found is not None
    assert found.usage == {"input_tokens": 12}
