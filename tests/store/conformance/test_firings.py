"""E9: what a firing starts, leaves out or puts off, and that it never happens twice."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.errors import BackburnerError, LimitReached
from backburner.model.events import EventKind
from backburner.model.schedule import MADE_UP_MAX, Firing, Overlap, ScheduleState, Turn
from backburner.model.states import ErrorKind, Kind, State
from backburner.store.protocol import Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import ADA, ENDINGS, PLACE, running
from tests.store.conformance.schedules import FIRST, PLENTY, add, get, start, turn


async def test_e9_a_firing_starts_its_task_and_moves_on(store: Store) -> None:
    await add(store)
    fired = await store.fire("sc_1", FIRST, turn(FIRST, next_at=2_000))
    assert fired is not None
    assert [(each.nominal_at, each.task) for each in fired] == [(FIRST, "bg_sc_1_1000")]
    task = await store.get("bg_sc_1_1000")
    assert task is not None
    assert (task.state, task.schedule, task.hand_over) == (State.QUEUED, "sc_1", "0+4096")
    assert [event.kind for event in await store.events(task.id)] == [EventKind.CREATED]
    schedule = await get(store)
    assert (schedule.next_at, schedule.due_at, schedule.last_at) == (2_000, 2_000, FIRST)
    assert (schedule.fired, schedule.last_task) == (1, task.id)
    assert await store.firings("sc_1") == fired


async def test_e9_a_firing_never_happens_twice(store: Store, open_another: OpenAnother) -> None:
    """Many who race: one of them fires."""
    await add(store)
    others = [await open_another() for _ in range(4)]
    answers = await asyncio.gather(
        *(
            other.fire("sc_1", FIRST, turn(FIRST, next_at=2_000))
            for other in others
            for _ in range(5)
        )
    )
    assert sum(answer is not None for answer in answers) == 1
    assert len(await store.newest(ADA, limit=100)) == 1
    assert (await get(store)).fired == 1


@pytest.mark.parametrize("state", ["paused", "canceled", "done", "moved"])
async def test_e9_a_firing_is_guarded_by_what_it_expects(store: Store, state: str) -> None:
    await add(store)
    match state:
        case "paused":
            await store.pause_schedule("sc_1", ADA)
        case "canceled":
            await store.cancel_schedule("sc_1", ADA)
        case "done":
            await store.fire("sc_1", FIRST, Turn())
        case _:
            await store.fire("sc_1", FIRST, Turn(next_at=2_000, due_at=2_000))
    assert await store.fire("sc_1", FIRST, turn(FIRST, next_at=3_000)) is None
    assert await store.newest(ADA, limit=10) == []


async def test_e9_the_last_firing_ends_the_schedule(store: Store) -> None:
    await add(store, cron=None, at=FIRST)
    await store.fire("sc_1", FIRST, turn(FIRST, next_at=None))
    schedule = await get(store)
    assert (schedule.state, schedule.next_at, schedule.fired) == (ScheduleState.DONE, None, 1)
    assert schedule.ended_at is not None
    assert not await store.due_schedules(store.now(), 10)


async def test_e9_overlap_skip_leaves_the_firing_out_and_says_so(store: Store) -> None:
    await add(store)
    await store.fire("sc_1", FIRST, turn(FIRST, next_at=2_000))
    fired = await store.fire("sc_1", 2_000, turn(2_000, next_at=3_000))
    assert fired is not None
    assert (fired[0].task, fired[0].reason) == (None, "bg_sc_1_1000 has not ended")
    assert await store.get("bg_sc_1_2000") is None
    await store.request_stop("bg_sc_1_1000", ADA, 0)
    third = await store.fire("sc_1", 3_000, turn(3_000, next_at=4_000))
    assert third is not None
    assert third[0].task == "bg_sc_1_3000"
    history = await store.firings("sc_1")
    assert [each.skipped for each in history] == [False, True, False]
    assert (await get(store)).fired == 2


async def test_e9_overlap_queue_starts_one_after_the_other_however_that_ends(store: Store) -> None:
    await add(store, overlap=Overlap.QUEUE)
    for nominal in (1_000, 2_000, 3_000):
        await store.fire("sc_1", nominal, turn(nominal, next_at=nominal + 1_000))
    third = await store.get("bg_sc_1_3000")
    assert third is not None
    assert (third.after, third.after_failure) == (("bg_sc_1_2000",), True)
    assert [task.id for task in await store.waiting_for_keeper()] == ["bg_sc_1_1000"]
    await store.claim("bg_sc_1_1000", 1, PLACE)
    assert await store.waiting_for_keeper() == []
    await store.finish("bg_sc_1_1000", 1, Ending.exited(3))
    assert [task.id for task in await store.waiting_for_keeper()] == ["bg_sc_1_2000"]


async def test_e9_a_queue_of_firings_does_not_grow_without_end(store: Store) -> None:
    await add(store, overlap=Overlap.QUEUE)
    for nominal in range(1_000, 1_000 + MADE_UP_MAX + 3):
        await store.fire("sc_1", nominal, turn(nominal, next_at=nominal + 1))
    assert len(await store.newest(ADA, limit=1000)) == MADE_UP_MAX + 1
    assert "have not ended" in str((await store.firings("sc_1"))[0].reason)


async def test_e9_overlap_parallel_starts_at_once(store: Store) -> None:
    await add(store, overlap=Overlap.PARALLEL)
    for nominal in (1_000, 2_000):
        await store.fire("sc_1", nominal, turn(nominal, next_at=nominal + 1_000))
    assert len(await store.waiting_for_keeper()) == 2


async def test_e9_missed_ones_that_are_made_up_for_come_one_after_the_other(store: Store) -> None:
    """Also where firings that overlap are left out: that would leave out all but one."""
    await add(store)
    said = "more were missed"
    fired = await store.fire(
        "sc_1",
        FIRST,
        turn(1_000, 2_000, 3_000, next_at=9_000, made_up=True, passed_over=said),
    )
    assert fired is not None
    assert [each.task is None for each in fired] == [False, False, False]
    assert [each.reason for each in fired] == [None, None, said]
    assert [task.id for task in await store.waiting_for_keeper()] == ["bg_sc_1_1000"]
    assert (await get(store)).last_at == 3_000


async def test_e9_what_is_not_made_up_for_is_in_the_history(store: Store) -> None:
    await add(store)
    nothing = Turn(next_at=5_000, due_at=5_000, passed_over="missed: nobody was there")
    fired = await store.fire("sc_1", FIRST, nothing)
    assert fired is not None
    assert [(each.nominal_at, each.skipped) for each in fired] == [(FIRST, True)]
    assert (await get(store)).fired == 0


async def test_e3_a_firing_above_the_limit_of_its_session_is_left_out(store: Store) -> None:
    await add(store, overlap=Overlap.PARALLEL, task_limit=1)
    await store.fire("sc_1", FIRST, turn(FIRST, next_at=2_000))
    fired = await store.fire("sc_1", 2_000, turn(2_000, next_at=3_000))
    assert fired is not None
    assert "1 is the limit" in str(fired[0].reason)


async def test_e3_firings_that_wait_for_each_other_take_no_places(store: Store) -> None:
    await add(store, overlap=Overlap.QUEUE, task_limit=2)
    for nominal in (1_000, 2_000, 3_000, 4_000):
        await store.fire("sc_1", nominal, turn(nominal, next_at=nominal + 1_000))
    assert len(await store.newest(ADA, limit=10)) == 4
    other = replace(start(1).task, id="bg_other", schedule=None)
    await store.create(other, limit=2)


async def test_e3_parked_calls_and_firings_do_not_take_each_others_places(store: Store) -> None:
    await add(store, kind=Kind.TOOL, overlap=Overlap.QUEUE, task_limit=1)
    call = replace(start(1).task, id="bg_call", kind=Kind.TOOL, schedule=None)
    await store.begin(call, PLACE, limit=1, parked=True)
    for nominal in (1_000, 2_000, 3_000):
        begun = start(nominal)
        tool = replace(begun, task=replace(begun.task, kind=Kind.TOOL))
        fired = await store.fire("sc_1", nominal, Turn((tool,), nominal + 1_000, nominal + 1_000))
        assert fired is not None
        assert not fired[0].skipped
    await store.begin(replace(call, id="bg_run"), PLACE, limit=2)
    with pytest.raises(LimitReached):
        await store.begin(replace(call, id="bg_more"), PLACE, limit=2)


async def test_e9_a_firing_that_cannot_start_is_a_failed_task_that_is_told(store: Store) -> None:
    await add(store)
    ending = Ending.failed(ErrorKind.SPAWN, "gone")
    await store.fire("sc_1", FIRST, Turn((start(FIRST, ending=ending),), 2_000, 2_000))
    task = await store.get("bg_sc_1_1000")
    assert task is not None
    assert (task.state, task.error) == (State.FAILED, ending.error)
    assert len(await store.signals(ADA)) == 1


async def test_e9_a_task_that_waits_for_an_application_says_so(store: Store) -> None:
    await add(store)
    await store.fire("sc_1", FIRST, Turn((start(FIRST, detail="waits for it"),), 2_000, 2_000))
    task = await store.get("bg_sc_1_1000")
    assert task is not None
    assert task.detail == "waits for it"


async def test_e9_an_id_that_is_taken_is_not_fired_over(store: Store) -> None:
    await add(store)
    await store.create(replace(start(FIRST).task, schedule=None), limit=PLENTY)
    fired = await store.fire("sc_1", FIRST, turn(FIRST, next_at=2_000))
    assert fired is not None
    assert fired[0].skipped


@pytest.mark.parametrize(
    "turn",
    [
        Turn(next_at=FIRST, due_at=FIRST),
        Turn(next_at=5_000, due_at=4_000),
        Turn(next_at=5_000),
        Turn((start(FIRST), start(FIRST)), 5_000, 5_000),
    ],
)
async def test_e9_nonsense_cannot_be_written(store: Store, turn: Turn) -> None:
    """The same firing again, one that is due before its time, one without, the same one twice."""
    await add(store, overlap=Overlap.PARALLEL)
    before = await get(store)
    with pytest.raises(BackburnerError):
        await store.fire("sc_1", FIRST, turn)
    assert await get(store) == before
    assert await store.newest(ADA, limit=10) == []


def test_e9_a_firing_as_json() -> None:
    firing = Firing("sc_1", 0, 1_500_000, "bg_1")
    assert firing.document() == {
        "schedule_id": "sc_1",
        "nominal_at": "1970-01-01T00:00:00.000000Z",
        "at": "1970-01-01T00:00:01.500000Z",
        "task_id": "bg_1",
        "skipped": False,
        "reason": None,
    }


# What must not be lost


@pytest.mark.parametrize("changes", [{"cron": None, "at": FIRST}, {"overlap": Overlap.QUEUE}])
async def test_e9_what_finds_no_room_is_put_off_and_not_lost(
    store: Store, changes: dict[str, Any]
) -> None:
    await add(store, task_limit=1, **changes)
    other = await running(store)
    next_at = None if "at" in changes else FIRST + 60
    assert await store.fire("sc_1", FIRST, turn(FIRST, next_at=next_at)) is None
    waiting = await get(store)
    assert (waiting.state, waiting.next_at, waiting.fired) == (ScheduleState.ACTIVE, FIRST, 0)
    assert waiting.detail == "put off: the session has 1 active shell tasks, and 1 is the limit"
    assert waiting.due_at is not None
    assert store.now() < waiting.due_at <= store.now() + 30 * clock.SECOND
    assert await store.firings("sc_1") == []
    await store.finish(other.id, 1, ENDINGS["succeeded"])
    (firing,) = await store.fire("sc_1", FIRST, turn(FIRST, next_at=next_at)) or []
    assert firing.task is not None
    assert (await get(store)).detail is None


async def test_e9_another_firing_of_a_cron_schedule_is_skipped_at_the_limit(store: Store) -> None:
    await add(store, task_limit=1)
    await running(store)
    (firing,) = await store.fire("sc_1", FIRST, turn(FIRST, next_at=FIRST + 60)) or []
    assert (firing.task, firing.reason) == (
        None,
        "the session has 1 active shell tasks, and 1 is the limit",
    )


async def test_e9_a_firing_is_brought_forward_to_one_that_was_not_dealt_with(store: Store) -> None:
    await add(store)
    await store.fire("sc_1", FIRST, turn(FIRST, next_at=FIRST + 6000))
    expected = FIRST + 6000
    for earlier in (FIRST - 60, FIRST, expected, expected + 60):
        assert not await store.bring_forward("sc_1", expected, next_at=earlier, due_at=earlier)
    soon = FIRST + 60
    assert not await store.bring_forward("sc_1", FIRST, next_at=soon, due_at=soon)
    assert await store.bring_forward("sc_1", expected, next_at=soon, due_at=soon)
    assert ((await get(store)).next_at, (await get(store)).due_at) == (soon, soon)


async def test_e9_what_a_wrong_clock_has_fired_of_times_to_come_is_dealt_with_anew(
    store: Store,
) -> None:
    """A task that is there is not started once more, when its time comes."""
    await add(store, overlap=Overlap.PARALLEL)
    early, far = FIRST + 60, FIRST + 6000
    await store.fire("sc_1", FIRST, turn(FIRST, early, FIRST + 120, next_at=far))
    assert not await store.bring_forward("sc_1", far + 1, next_at=early, due_at=early, anew=True)
    assert len(await store.firings("sc_1")) == 3, "something else is expected"
    assert await store.bring_forward("sc_1", far, next_at=early, due_at=early, anew=True)
    schedule = await get(store)
    assert (schedule.next_at, schedule.due_at, schedule.last_at) == (early, early, FIRST)
    assert [firing.nominal_at for firing in await store.firings("sc_1")] == [FIRST]
    forgotten = f"bg_sc_1_{FIRST + 120}"
    assert await store.request_stop(forgotten, ADA, 0) is not None
    assert await store.forget([forgotten]) == 1
    (again,) = await store.fire("sc_1", early, turn(early, next_at=FIRST + 120)) or []
    assert (again.task, again.reason) == (None, f"the id bg_sc_1_{early} is taken")
    (again,) = await store.fire("sc_1", FIRST + 120, turn(FIRST + 120, next_at=far)) or []
    assert again.task == forgotten
    assert len(await store.newest(ADA, limit=9)) == 3


async def test_e9_all_that_a_schedule_has_fired_may_have_been_of_times_to_come(
    store: Store,
) -> None:
    await add(store)
    await store.fire("sc_1", FIRST, turn(FIRST, next_at=FIRST + 60))
    early = FIRST - 600
    assert await store.bring_forward("sc_1", FIRST + 60, next_at=early, due_at=early, anew=True)
    schedule = await get(store)
    assert (schedule.next_at, schedule.last_at) == (early, None)
    assert await store.firings("sc_1") == []
