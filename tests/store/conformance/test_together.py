"""What is asked for at once is answered as if each had come alone, however a store carries it out.

Begins and ends come in crowds; a store may write many of them by one statement.
"""

import asyncio
from typing import Any

import pytest

from backburner.model.ending import Ending
from backburner.model.errors import Conflict, LimitReached
from backburner.model.events import EventKind
from backburner.model.signals import end_key
from backburner.model.states import Kind, State
from backburner.model.task import NewTask, Place, Progress, Task
from backburner.store.protocol import Facts, Output, Scope, Store

HERE = Place("boot", 1, 5, worker="wk_1")
EVERYTHING = Scope("local")


def new(task_id: str, session: str = "s", **spec: object) -> NewTask:
    return NewTask(task_id, "local", session, Kind.TOOL, "title", {"tool": "t", **spec})


async def begun(store: Store, count: int) -> list[str]:
    ids = [f"bg_{number:02}" for number in range(count)]
    await asyncio.gather(*(store.begin(new(each), HERE, limit=None) for each in ids))
    return ids


async def at_once(*work: Any) -> list[Any]:
    return await asyncio.gather(*work, return_exceptions=True)


async def kinds(store: Store, task_id: str) -> list[EventKind]:
    return [event.kind for event in await store.events(task_id)]


async def test_e3_the_limit_of_each_session_holds_among_those_that_begin_at_once(
    store: Store,
) -> None:
    sessions = ["one", "two", "one", "two", "one", "other", "two", "one"]
    wanted = [new(f"bg_{number}", session) for number, session in enumerate(sessions)]
    answers = await at_once(*(store.begin(each, HERE, limit=2) for each in wanted))
    refused = [isinstance(answer, LimitReached) for answer in answers]
    begun_of = [
        each.session for each, not_begun in zip(wanted, refused, strict=True) if not not_begun
    ]
    assert sorted(begun_of) == ["one", "one", "other", "two", "two"]
    for each, not_begun in zip(wanted, refused, strict=True):
        assert (await store.get(each.id) is None) == not_begun
    assert len(await store.active()) == 5


async def test_one_id_that_begins_several_times_at_once_is_one_task(store: Store) -> None:
    same = [store.begin(new("bg_1"), HERE, limit=1) for _ in range(3)]
    answers = await at_once(*same, store.begin(new("bg_1", other=1), HERE, limit=1))
    tasks = [each for each in answers if not isinstance(each, BaseException)]
    if all(isinstance(each, Conflict) for each in answers[:3]):
        assert answers[3][1], "the other one came first"
    else:
        assert sorted(fresh for _, fresh in tasks) == [False, False, True]
        assert isinstance(answers[3], Conflict)
    assert await kinds(store, "bg_1") == [EventKind.CREATED, EventKind.STARTED]


async def test_a_stale_attempt_among_many_ends_changes_nothing(store: Store) -> None:
    ids = await begun(store, 6)
    await store.requeue(ids[2], 1, "its worker died")
    answers = await at_once(*(store.finish(each, 1, Ending.succeeded(result=each)) for each in ids))
    assert [answer and answer.result for answer in answers] == [
        None if each == ids[2] else each for each in ids
    ]
    stale = await store.get(ids[2])
    assert stale is not None
    assert (stale.state, stale.result) == (State.QUEUED, None)
    told = await store.signals(EVERYTHING)
    assert sorted(signal.key for signal in told) == sorted(
        end_key(each) for each in ids if each != ids[2]
    )


async def test_a1_a_task_that_ends_several_times_at_once_ends_once(store: Store) -> None:
    ids = await begun(store, 3)
    ends = [Ending.succeeded(result=1), Ending.canceled(), Ending.succeeded(result=2)]
    answers = await at_once(*(store.finish(each, 1, end) for end in ends for each in ids))
    for place, each in enumerate(ids):
        own: list[Task] = [answer for answer in answers[place::3] if answer is not None]
        assert [await store.get(each)] == own
        assert (await kinds(store, each)).count(EventKind.FINISHED) == 1
    assert len(await store.signals(EVERYTHING)) == 3


async def test_an_end_that_cannot_be_written_takes_no_other_with_it(store: Store) -> None:
    ids = await begun(store, 5)
    ends = {each: Ending.succeeded(result=each) for each in ids}
    ends[ids[1]] = Ending.succeeded(result=object())
    ends[ids[3]] = Ending.succeeded(result=float("nan"))
    answers = await at_once(*(store.finish(each, 1, end) for each, end in ends.items()))
    assert [type(answer) for answer in answers] == [Task, TypeError, Task, ValueError, Task]
    states = [task.state for each in ids if (task := await store.get(each))]
    assert states == [
        State.SUCCEEDED, State.RUNNING, State.SUCCEEDED, State.RUNNING, State.SUCCEEDED,
    ]  # fmt: skip
    assert len(await store.signals(EVERYTHING)) == 3
    assert await store.finish(ids[1], 1, Ending.canceled()) is not None


async def test_each_end_has_its_own_event_and_signal_in_order(store: Store) -> None:
    ids = await begun(store, 4)
    await store.note(ids[1], 1, EventKind.DETAIL, Facts(detail="half"))
    seen = await store.last_event()
    for each in ids:
        await store.finish(each, 1, Ending.succeeded(summary=each))
    events = await store.events_since(seen)
    assert [(event.task, event.data["summary"]) for event in events] == [
        (each, each) for each in ids
    ]
    assert [event.number for event in events] == [3, 4, 3, 3]
    signals = await store.signals(EVERYTHING)
    assert [signal.data["summary"] for signal in signals] == ids


async def test_a_silent_one_and_one_that_has_asked_end_among_many(store: Store) -> None:
    await store.begin(new("bg_silent", wake="silent"), HERE, limit=None)
    await store.begin(new("bg_asks"), HERE, limit=None)
    await store.begin(new("bg_plain"), HERE, limit=None)
    assert await store.ask("bg_asks", 1, "q1", "really?")
    answers = await at_once(
        *(
            store.finish(each, 1, Ending.succeeded())
            for each in ("bg_silent", "bg_asks", "bg_plain")
        )
    )
    assert [answer.signal_state for answer in answers] == [None, "pending", "pending"]
    states = {signal.key: signal.state for signal in await store.signals(EVERYTHING)}
    assert states.pop(end_key("bg_asks")) == states.pop(end_key("bg_plain")) == "pending"
    assert list(states.values()) == ["dropped"], "nobody has to answer any more"


async def test_whoever_knows_how_it_began_is_told_what_the_record_says_of_its_end(
    store: Store,
) -> None:
    """Also where something happened in between."""
    names = ("bg_plain", "bg_noted", "bg_asked", "bg_parked", "bg_to_stop")
    known = [(await store.begin(new(each), HERE, limit=None))[0] for each in names]
    progress = Facts(progress=Progress(1, 2), output=Output(7, 3))
    assert await store.note("bg_noted", 1, EventKind.PROGRESS, progress)
    assert await store.ask("bg_asked", 1, "q1", "really?")
    assert await store.park("bg_parked", 1)
    assert await store.request_stop("bg_to_stop", EVERYTHING, 5.0)
    ending = Ending.succeeded(summary="done", result={"a": [1, None]})
    answers = await at_once(
        *(store.finish(each.id, 1, ending, usage={"n": 1}, begun=each) for each in known)
    )
    for answer in answers:
        assert answer == await store.get(answer.id), "as it was written"
        assert (answer.state, answer.result) == (State.SUCCEEDED, {"a": [1, None]})
    again = await at_once(*(store.finish(each.id, 1, ending, begun=each) for each in known))
    assert again == [None] * len(known), "it has ended"
    plain, noted, asked, parked, to_stop = answers
    assert (plain.progress, plain.output_bytes) == (None, 0)
    assert (noted.progress, noted.output_bytes) == (Progress(1, 2), 7)
    assert asked.question is None
    assert parked.parked_at is not None
    assert to_stop.stop is not None


async def test_e3_an_end_leaves_its_room_to_the_begin_that_waits_with_it(
    store: Store,
) -> None:
    await store.begin(new("bg_1"), HERE, limit=1)
    (_, fresh), ended = await asyncio.gather(
        store.begin(new("bg_2"), HERE, limit=1), store.finish("bg_1", 1, Ending.succeeded())
    )
    assert fresh
    assert ended is not None


@pytest.mark.parametrize("session", ["caf\u00e9", "half\udcff", 'tab\tand "quote"'])
async def test_a_session_of_any_name_is_counted_and_told(store: Store, session: str) -> None:
    scope = Scope("local", session)
    await store.begin(new("bg_1", session), HERE, limit=1)
    with pytest.raises(LimitReached):
        await store.begin(new("bg_2", session), HERE, limit=1)
    assert await store.finish("bg_1", 1, Ending.succeeded()) is not None
    assert [task.id for task in await store.newest(scope, limit=5)] == ["bg_1"]
    assert len(await store.signals(scope)) == 1


@pytest.mark.parametrize("text", ["a\0b", "a\udcffb", "a\ue000\ue001b", "a\\u0000\\ud800b"])
async def test_promise_1_a_text_that_no_database_holds_stops_none_of_many(
    store: Store, text: str
) -> None:
    wanted = [
        NewTask(f"bg_{number}", "local", text, Kind.TOOL, text, {"tool": "t", text: text})
        for number in range(3)
    ]
    await asyncio.gather(*(store.begin(each, HERE, limit=3) for each in wanted))
    ending = Ending.succeeded(result={text: text}, summary=text)
    answers = await asyncio.gather(*(store.finish(each.id, 1, ending) for each in wanted))
    for each, answer in zip(wanted, answers, strict=True):
        assert answer is not None
        assert answer == await store.get(each.id), "as it was written"
        assert (answer.spec, answer.result) == (each.spec, {text: text})
        assert (answer.summary or "")[:: len(answer.summary or "") - 1] == "ab"
    signals = await store.signals(Scope("local", text))
    assert [signal.data["summary"] for signal in signals] == [text] * 3
