"""Writing a new task: durable, idempotent by id (E12), within its limit (E3)."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest

from backburner.model.ending import Ending
from backburner.model.errors import Conflict, LimitReached
from backburner.model.events import EventKind
from backburner.model.signals import SignalKind, SignalState
from backburner.model.states import ErrorKind, Kind, State
from backburner.model.task import NewTask, Task
from backburner.store.protocol import Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ADAS_OTHER_SESSION,
    BOB,
    PLACE,
    PLENTY,
    ended,
    get,
    new_task,
    queued,
    running,
)


async def test_a_new_task_is_queued_and_has_what_was_given(store: Store) -> None:
    before = store.now()
    wanted = NewTask(
        id="bg_1",
        owner="ada",
        session="chat",
        kind=Kind.TOOL,
        title="tests",
        spec={"command": ["a", "b"], "deep": {"n": 1.5, "none": None, "yes": True}},
        max_runtime_s=12.5,
        parent="bg_0",
        schedule="sc_1",
        hand_over="h1",
    )
    task = await store.create(wanted, limit=1)
    assert before <= task.created_at <= store.now()
    assert task == Task(
        seq=task.seq,
        id="bg_1",
        owner="ada",
        session="chat",
        kind=Kind.TOOL,
        title="tests",
        spec={"command": ["a", "b"], "deep": {"n": 1.5, "none": None, "yes": True}},
        state=State.QUEUED,
        attempt=1,
        created_at=task.created_at,
        max_runtime_s=12.5,
        parent="bg_0",
        schedule="sc_1",
        hand_over="h1",
    )
    assert await store.get("bg_1") == task


async def test_x1_a_created_task_is_there_for_every_process_at_once(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    for number in range(20):
        task = await queued(store, f"bg_{number}")
        assert await other.get(task.id) == task


async def test_x1_a_created_task_outlives_the_handle(
    store: Store, open_another: OpenAnother
) -> None:
    task = await running(store)
    await store.close()
    assert await (await open_another()).get(task.id) == task


@pytest.mark.parametrize("state", ["queued", "running", "ended"])
async def test_e12_the_same_start_again_gives_the_task_that_is_there(
    store: Store, open_another: OpenAnother, state: str
) -> None:
    make = {"queued": queued, "running": running, "ended": ended}[state]
    task = await make(store, "build")
    again = await (await open_another()).create(new_task("build"), limit=PLENTY)
    assert again == task
    assert await get(store, "build") == task
    assert [event.kind for event in await store.events("build")].count(EventKind.CREATED) == 1


async def test_e12_the_same_start_again_is_no_question_of_the_limit(store: Store) -> None:
    task = await store.create(new_task("build"), limit=1)
    assert await store.create(new_task("build"), limit=1) == task
    assert await store.create(new_task("build"), limit=0) == task


async def test_e12_a_repeated_start_that_failed_at_once_gives_that_failure(store: Store) -> None:
    ending = Ending.failed(ErrorKind.SPAWN, "no such folder")
    first = await store.create(new_task("build"), limit=PLENTY, ending=ending)
    assert await store.create(new_task("build"), limit=PLENTY, ending=ending) == first
    assert await store.create(new_task("build"), limit=PLENTY) == first
    assert len(await store.signals(ADA)) == 1


async def test_e12_the_order_of_keys_and_the_title_make_no_other_start(store: Store) -> None:
    first = await store.create(new_task("build", spec={"a": 1, "b": [2]}), limit=PLENTY)
    again = replace(new_task("build", spec={"b": [2], "a": 1}), title="other", max_runtime_s=1)
    assert await store.create(again, limit=PLENTY) == first


async def test_e12_a_specification_is_compared_as_json(store: Store) -> None:
    """A caller that gives tuples, or numbers for keys, gets lists and texts back."""
    spec: dict[Any, Any] = {"words": ("a", "b"), 1: {2: "x"}}
    first = await store.create(new_task("build", spec=spec), limit=PLENTY)
    assert first.spec == {"words": ["a", "b"], "1": {"2": "x"}}
    assert await store.create(new_task("build", spec=spec), limit=PLENTY) == first


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(new_task("build", spec={"command": "make"}), id="another command"),
        pytest.param(new_task("build", scope=ADAS_OTHER_SESSION), id="another session"),
        pytest.param(new_task("build", scope=BOB), id="another owner"),
        pytest.param(new_task("build", kind=Kind.TOOL), id="another kind"),
    ],
)
async def test_e12_anything_else_under_that_id_is_a_conflict(store: Store, other: NewTask) -> None:
    task = await running(store, "build")
    with pytest.raises(Conflict) as refusal:
        await store.create(other, limit=PLENTY)
    assert await get(store, "build") == task
    assert len(await store.events("build")) == 2
    for secret in ("ada", "chat", "pytest", "tests"):
        assert secret not in str(refusal.value), "a stranger learns nothing of the task"


async def test_e12_forty_starts_of_one_id_at_once_make_one_task(
    store: Store, open_another: OpenAnother
) -> None:
    handles = [store, await open_another(), await open_another(), await open_another()]
    tasks = await asyncio.gather(
        *(handles[number % 4].create(new_task("build"), limit=1) for number in range(40))
    )
    assert {(task.id, task.seq, task.attempt) for task in tasks} == {("build", tasks[0].seq, 1)}
    assert [event.number for event in await store.events("build")] == [1]


async def test_e3_one_more_than_the_limit_is_refused_and_leaves_nothing(store: Store) -> None:
    for _ in range(3):
        await store.create(new_task(), limit=3)
    last = await store.last_event()
    with pytest.raises(LimitReached, match=r"\b3\b"):
        await store.create(new_task("bg_more"), limit=3)
    assert await store.get("bg_more") is None
    assert await store.last_event() == last


async def test_e3_the_limit_counts_active_tasks_of_one_kind_in_one_session(store: Store) -> None:
    await store.create(new_task(), limit=1)
    for other in (
        new_task(scope=ADAS_OTHER_SESSION),
        new_task(scope=BOB),
        new_task(kind=Kind.TOOL),
    ):
        await store.create(other, limit=1)
    with pytest.raises(LimitReached):
        await store.create(new_task(), limit=1)


async def test_e3_a_task_that_ended_frees_its_place(store: Store) -> None:
    task = await store.create(new_task(), limit=1)
    assert await store.claim(task.id, 1, PLACE) is not None
    with pytest.raises(LimitReached):
        await store.create(new_task(), limit=1)
    await store.finish(task.id, 1, Ending.exited(0))
    second = await store.create(new_task(), limit=1)
    assert await store.request_stop(second.id, ADA, 5.0) is not None
    await store.create(new_task(), limit=1)


async def test_e3_forty_starts_at_once_against_a_limit_of_five(
    store: Store, open_another: OpenAnother
) -> None:
    """Exactly five get a place, whichever handle they come through."""
    handles = [store, await open_another(), await open_another(), await open_another()]
    outcomes = await asyncio.gather(
        *(_outcome(handles[number % 4].create(new_task(), limit=5)) for number in range(40))
    )
    assert sorted(outcomes) == ["LimitReached"] * 35 + ["created"] * 5
    assert len(await store.newest(ADA, limit=PLENTY)) == 5
    assert len(await store.active()) == 5


async def test_e3_one_that_is_there_already_takes_no_place_from_those_that_come_with_it(
    store: Store,
) -> None:
    await store.create(new_task("build"), limit=3)
    names = ("build", "test", "build", "lint", "more")
    outcomes = await asyncio.gather(
        *(_outcome(store.create(new_task(name), limit=3)) for name in names)
    )
    assert outcomes == ["created"] * 4 + ["LimitReached"]
    assert {task.id for task in await store.active()} == {"build", "test", "lint"}


async def test_e3_those_that_come_together_are_answered_as_if_each_came_alone(store: Store) -> None:
    """The order of the calls holds, and what one is refused for concerns only those after it."""
    await store.create(new_task("there"), limit=9)
    await store.create(new_task("hers", scope=BOB), limit=9)
    wanted = [
        store.create(new_task("there"), limit=9),
        store.create(new_task("first"), limit=2),
        store.create(new_task("second", kind=Kind.TOOL), limit=9),
        store.create(new_task("third"), limit=2),
        store.create(new_task("hers"), limit=9),
        store.create(new_task("fourth"), limit=9),
    ]
    found = await asyncio.gather(*wanted, return_exceptions=True)
    kinds = [type(each) for each in found]
    assert kinds == [Task, Task, Task, LimitReached, Conflict, Task]
    made = [each.seq for each in found if isinstance(each, Task)]
    assert made == sorted(made)


async def _outcome(create: Awaitable[Task]) -> str:
    try:
        await create
    except LimitReached:
        return "LimitReached"
    return "created"


@pytest.mark.parametrize(
    "ending", [Ending.failed(ErrorKind.SPAWN, "no such folder"), Ending.canceled()]
)
async def test_x1_a_task_can_be_created_and_ended_in_one_step(store: Store, ending: Ending) -> None:
    task = await store.create(new_task("bg_1"), limit=PLENTY, ending=ending)
    assert (task.state, task.error, task.started_at) == (ending.state, ending.error, None)
    assert task.finished_at is not None
    assert task.signal_state is SignalState.PENDING
    assert await store.get("bg_1") == task
    kinds = [event.kind for event in await store.events("bg_1")]
    assert kinds == [EventKind.CREATED, EventKind.FINISHED]
    (signal,) = await store.signals(ADA)
    assert signal.task == "bg_1"
    expected = SignalKind.CANCELED if ending.error is None else SignalKind.FAILED
    assert signal.kind is expected


async def test_e3_a_task_that_could_not_start_takes_no_place(store: Store) -> None:
    await store.create(new_task(), limit=1)
    ending = Ending.failed(ErrorKind.SPAWN, "no such folder")
    task = await store.create(new_task(), limit=1, ending=ending)
    assert task.state is State.FAILED


async def test_e10_a_task_cannot_be_created_as_succeeded(store: Store) -> None:
    """Nothing succeeds without having run; and it is not left queued, for someone to run."""
    with pytest.raises(ValueError, match="succeeded"):
        await store.create(new_task("bg_1"), limit=PLENTY, ending=Ending.succeeded())
    assert await store.get("bg_1") is None
    assert await store.last_event() == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", object()])
async def test_a_specification_that_is_no_json_is_an_error_of_the_caller(
    store: Store, value: Any
) -> None:
    with pytest.raises((TypeError, ValueError)):
        await store.create(new_task("bg_1", spec={"x": value}), limit=PLENTY)
    assert await store.get("bg_1") is None


async def test_e12_an_id_of_a_stranger_is_refused_as_taken_also_where_there_is_no_room(
    store: Store,
) -> None:
    await store.create(new_task("bg_bobs", scope=BOB), limit=PLENTY)
    await store.create(new_task("bg_adas", scope=ADA), limit=1)
    with pytest.raises(Conflict):
        await store.create(new_task("bg_bobs", scope=ADA), limit=1)
    with pytest.raises(LimitReached):
        await store.create(new_task("bg_new", scope=ADA), limit=1)
