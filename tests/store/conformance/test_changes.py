"""Changes of state: guarded by the state and the attempt; a terminal state is final (E10, E11)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.signals import SignalState
from backburner.model.states import ErrorKind, State
from backburner.model.task import EndedFor, Place, Progress, Task
from backburner.store.protocol import Facts, Output, Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ENDINGS,
    PLACE,
    ended,
    get,
    queued,
    running,
)

Change = Callable[[Store, str, int], Awaitable[object]]

CHANGES: dict[str, Change] = {
    "claim": lambda store, task_id, attempt: store.claim(task_id, attempt, PLACE),
    "requeue": lambda store, task_id, attempt: store.requeue(task_id, attempt, "the worker died"),
    "finish": lambda store, task_id, attempt: store.finish(task_id, attempt, ENDINGS["exit"]),
    "refuse": lambda store, task_id, attempt: store.refuse(task_id, attempt, ENDINGS["exit"]),
    "begin_ending": lambda store, task_id, attempt: store.begin_ending(
        task_id, attempt, EndedFor.TIMEOUT
    ),
    "note": lambda store, task_id, attempt: store.note(
        task_id, attempt, EventKind.DETAIL, Facts(detail="late")
    ),
}
"""Every change that a worker makes; each answers None or False when its guard does not hold."""


async def everything(store: Store, task_id: str) -> tuple[object, ...]:
    """All that the store knows of a task."""
    return (
        await store.get(task_id),
        await store.events(task_id),
        await store.signals(ADA, task=task_id),
        await store.last_event(),
    )


# Claiming


async def test_a_claimed_task_runs_where_the_worker_says(store: Store) -> None:
    task = await queued(store)
    before = store.now()
    claimed = await store.claim(task.id, 1, PLACE)
    assert claimed is not None
    assert before <= (claimed.started_at or 0) <= store.now()
    assert claimed == replace(task, state=State.RUNNING, place=PLACE, started_at=claimed.started_at)
    assert await store.get(task.id) == claimed


async def test_x2_of_forty_claims_at_once_one_wins(store: Store, open_another: OpenAnother) -> None:
    """Nothing runs twice."""
    handles = [store, await open_another(), await open_another(), await open_another()]
    for _ in range(5):
        task = await queued(store)
        places = [Place("boot-1", 1, pid) for pid in range(1, 41)]
        claims = await asyncio.gather(
            *(handles[number % 4].claim(task.id, 1, place) for number, place in enumerate(places)),
        )
        (winner,) = [claimed for claimed in claims if claimed is not None]
        assert await get(store, task.id) == winner
        assert len(await store.events(task.id)) == 2


# Finishing


@pytest.mark.parametrize("name", ENDINGS)
async def test_e10_a_task_ends_as_it_is_said(store: Store, name: str) -> None:
    ending = ENDINGS[name]
    task = await running(store)
    before = store.now()
    output = Output(total=5_000_000, dropped=3_000_000)
    done = await store.finish(task.id, 1, ending, output=output, leftovers=2)
    assert done is not None
    assert before <= (done.finished_at or 0) <= store.now()
    assert done == replace(
        task,
        state=ending.state,
        finished_at=done.finished_at,
        error=ending.error,
        exit_code=ending.exit_code,
        summary=ending.summary,
        result=ending.result,
        output_bytes=5_000_000,
        dropped_bytes=3_000_000,
        leftovers=2,
        signal_state=SignalState.PENDING,
    )
    assert await store.get(task.id) == done


@pytest.mark.parametrize("result", [0, "", False, [], {}, 0.5, "text", [None], {"a": {"b": 1}}])
async def test_e10_every_result_is_kept_also_an_empty_one(store: Store, result: object) -> None:
    task = await ended(store, ending=Ending.succeeded(result=result))
    assert task.result == result
    assert type((await get(store, task.id)).result) is type(result)


@pytest.mark.parametrize("change", ["finish", "refuse"])
@pytest.mark.parametrize("name", ENDINGS)
async def test_e10_a_queued_task_can_fail_or_be_canceled_but_not_succeed(
    store: Store, name: str, change: str
) -> None:
    task = await queued(store)
    done = await getattr(store, change)(task.id, 1, ENDINGS[name])
    if ENDINGS[name].state is State.SUCCEEDED:
        assert done is None
        assert await get(store, task.id) == task
        assert await store.signals(ADA) == []
    else:
        assert done is not None
        assert done.state is ENDINGS[name].state


@pytest.mark.parametrize("name", ENDINGS)
async def test_e10_what_has_begun_is_not_refused(store: Store, name: str) -> None:
    """Whoever could not begin it hears that somebody has."""
    task = await running(store)
    known = await everything(store, task.id)
    assert await store.refuse(task.id, 1, ENDINGS[name]) is None
    assert await everything(store, task.id) == known


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["succeeded", "exit", "canceled"])
async def test_e10_nothing_follows_a_terminal_state(store: Store, name: str, change: str) -> None:
    """A late conflicting update is dropped whole: no field, no event, no signal."""
    task = await ended(store, ending=ENDINGS[name])
    known = await everything(store, task.id)
    assert not await CHANGES[change](store, task.id, task.attempt)
    assert await everything(store, task.id) == known


async def test_e10_of_many_endings_at_once_one_wins(
    store: Store, open_another: OpenAnother
) -> None:
    other = await open_another()
    for _ in range(5):
        task = await running(store)
        endings = [*ENDINGS.values()] * 4
        outcomes = await asyncio.gather(
            *(
                (store if number % 2 else other).finish(task.id, 1, ending)
                for number, ending in enumerate(endings)
            )
        )
        (winner,) = [done for done in outcomes if done is not None]
        assert await get(store, task.id) == winner
        assert len(await store.signals(ADA, task=task.id)) == 1
        assert [event.kind for event in await store.events(task.id)].count(EventKind.FINISHED) == 1


# The attempt is the fencing token


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("attempt", [0, 2, -1, 7])
@pytest.mark.parametrize("state", ["queued", "running"])
async def test_e11_another_attempt_changes_nothing(
    store: Store, change: str, attempt: int, state: str
) -> None:
    task = await (queued if state == "queued" else running)(store)
    known = await everything(store, task.id)
    assert not await CHANGES[change](store, task.id, attempt)
    assert await everything(store, task.id) == known


@pytest.mark.parametrize("change", CHANGES)
async def test_e11_a_fenced_off_attempt_changes_nothing(store: Store, change: str) -> None:
    task = await running(store)
    await store.requeue(task.id, 1, "the worker died")
    await store.claim(task.id, 2, PLACE)
    known = await everything(store, task.id)
    assert not await CHANGES[change](store, task.id, 1)
    assert await everything(store, task.id) == known
    assert await store.finish(task.id, 2, ENDINGS["succeeded"]) is not None


@pytest.mark.parametrize("change", CHANGES)
async def test_a_task_that_is_not_there_cannot_be_changed(store: Store, change: str) -> None:
    assert not await CHANGES[change](store, "bg_none", 1)
    assert await store.last_event() == 0


@pytest.mark.parametrize(
    ("state", "refused"), [("queued", ["requeue", "begin_ending"]), ("running", ["claim"])]
)
async def test_e10_a_change_that_the_table_does_not_allow_changes_nothing(
    store: Store, state: str, refused: list[str]
) -> None:
    task = await (queued if state == "queued" else running)(store)
    known = await everything(store, task.id)
    for change in refused:
        assert not await CHANGES[change](store, task.id, 1)
    assert await everything(store, task.id) == known


# A further attempt


async def test_e11_a_requeued_task_is_queued_with_the_next_attempt(store: Store) -> None:
    task = await running(store)
    await store.note(task.id, 1, EventKind.DETAIL, Facts(detail="half", progress=Progress(1, 2)))
    again = await store.requeue(task.id, 1, "the worker died")
    assert again is not None
    assert again == replace(task, state=State.QUEUED, attempt=2, started_at=None, place=None)
    assert await store.get(task.id) == again
    event = (await store.events(task.id))[-1]
    assert event.kind is EventKind.REQUEUED
    assert event.data == {"attempt": 2, "reason": "the worker died"}
    assert await store.signals(ADA) == []


async def test_e11_attempts_count_on(store: Store) -> None:
    task = await queued(store)
    for attempt in range(1, 6):
        claimed = await store.claim(task.id, attempt, PLACE)
        assert claimed is not None
        assert claimed.attempt == attempt
        assert await store.requeue(task.id, attempt, "again") is not None
    assert (await get(store, task.id)).attempt == 6


async def test_x2_a_task_that_was_asked_to_stop_is_canceled_instead_of_tried_again(
    store: Store,
) -> None:
    """Its worker died before it could obey; starting it once more would go against the stop."""
    task = await running(store)
    assert await store.request_stop(task.id, ADA, 5.0) is not None
    after = await store.requeue(task.id, 1, "the worker died")
    assert after is not None
    assert after.state is State.CANCELED
    assert await store.get(task.id) == after
    assert await store.claim(task.id, after.attempt, PLACE) is None
    (signal,) = await store.signals(ADA)
    assert signal.task == task.id


# Facts beside the state


@pytest.mark.parametrize("reason", EndedFor)
async def test_a5_why_a_worker_ends_a_task_is_on_disk_and_the_first_reason_stays(
    store: Store, open_another: OpenAnother, reason: EndedFor
) -> None:
    task = await running(store)
    assert await store.begin_ending(task.id, 1, reason) is True
    other = await open_another()
    for again in EndedFor:
        assert await other.begin_ending(task.id, 1, again) is False
    assert await get(other, task.id) == replace(task, ended_for=reason)
    events = (await store.events(task.id))[2:]
    assert [(event.kind, event.data) for event in events] == [
        (EventKind.ENDING, {"reason": reason.value})
    ]
    assert await store.signals(ADA) == [], "it has not ended yet"


async def test_e11_a_further_attempt_is_not_being_ended(store: Store) -> None:
    task = await running(store)
    await store.begin_ending(task.id, 1, EndedFor.TIMEOUT)
    again = await store.requeue(task.id, 1, "once more")
    assert again is not None
    assert again.ended_for is None
    await store.claim(task.id, 2, PLACE)
    assert await store.begin_ending(task.id, 2, EndedFor.STOP) is True


async def test_what_was_noticed_is_kept_and_what_was_not_said_stays(store: Store) -> None:
    task = await running(store)
    assert await store.note(task.id, 1, EventKind.DETAIL, Facts(detail="compiling")) is True
    progress = Progress(3, 9.5, "files", "main.c")
    assert await store.note(task.id, 1, EventKind.DETAIL, Facts(progress=progress)) is True
    assert await store.note(task.id, 1, EventKind.ADOPTED, Facts(output=Output(7, 2))) is True
    assert await get(store, task.id) == replace(
        task, detail="compiling", progress=progress, output_bytes=7, dropped_bytes=2
    )
    events = (await store.events(task.id))[2:]
    assert [(event.kind, event.data) for event in events] == [
        (EventKind.DETAIL, {"detail": "compiling"}),
        (
            EventKind.DETAIL,
            {"progress": {"current": 3, "total": 9.5, "unit": "files", "label": "main.c"}},
        ),
        (EventKind.ADOPTED, {}),
    ]


async def test_x2_what_a_task_left_behind_can_be_noted_until_it_is_gone(store: Store) -> None:
    task = await ended(store, leftovers=3)
    assert await store.note(task.id, 1, EventKind.LEFTOVERS, Facts(leftovers=1)) is True
    assert (await get(store, task.id)).leftovers == 1
    output = Output(90, 10)
    assert (
        await store.note(task.id, 1, EventKind.LEFTOVERS, Facts(leftovers=0, output=output)) is True
    )
    after = await get(store, task.id)
    assert after == replace(task, leftovers=0, output_bytes=90, dropped_bytes=10)
    assert await store.note(task.id, 1, EventKind.LEFTOVERS, Facts(leftovers=5)) is False
    assert await get(store, task.id) == after


# Whole or not at all


async def test_x1_whoever_sees_an_ending_sees_its_event_and_its_signal(
    store: Store, open_another: OpenAnother
) -> None:
    """Looked at from another handle all the time, while tasks end."""
    other = await open_another()
    tasks = [await running(store) for _ in range(30)]
    looked = asyncio.Event()
    ending = asyncio.create_task(_end_one_by_one(store, tasks, looked))
    while not ending.done():
        for task in await other.newest(ADA, limit=100, states=[State.FAILED]):
            assert task.signal_state is SignalState.PENDING
            assert (await other.events(task.id))[-1].kind is EventKind.FINISHED
            assert len(await other.signals(ADA, task=task.id)) == 1
        looked.set()
        await asyncio.wait([ending], timeout=0)
    await ending


async def _end_one_by_one(store: Store, tasks: list[Task], looked: asyncio.Event) -> None:
    """A look may take as long as all of them: it is waited for now and then."""
    for number, task in enumerate(tasks):
        if number % 5 == 0:
            looked.clear()
            await looked.wait()
        assert await store.finish(task.id, 1, Ending.failed(ErrorKind.ERROR, "no"))
