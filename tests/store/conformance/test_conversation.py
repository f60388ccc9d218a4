"""Messages, approvals, wake policies, postponed signals, and sessions that have ended."""

import asyncio
from typing import Any

import pytest

from backburner.model import clock
from backburner.model.errors import LimitReached, StoreAway
from backburner.model.events import EventKind
from backburner.model.limits import MESSAGES_MAX
from backburner.model.messages import telling
from backburner.model.questions import APPROVAL_SCHEMA
from backburner.model.signals import Signal, SignalKind, SignalState, activity_key
from backburner.model.states import Kind, State
from backburner.model.task import Place, Task
from backburner.store.protocol import Facts, Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ADAS_OTHER_SESSION,
    BOB,
    ENDINGS,
    EVERY_SESSION_OF_ADA,
    PLACE,
    PLENTY,
    STRANGERS,
    ended,
    get,
    new_task,
    queued,
    running,
)

IN_AN_APPLICATION = Place("boot-1", 1, 4711, worker="wk_0000000000000000")


async def with_wake(store: Store, wake: str) -> Task:
    """A running task with this policy."""
    spec: dict[str, Any] = {"command": "x", "wake": wake}
    task = await store.create(new_task(spec=spec), limit=PLENTY)
    claimed = await store.claim(task.id, 1, PLACE)
    assert claimed is not None
    return claimed


async def inbox(store: Store) -> list[Signal]:
    return await store.signals(ADA)


# Questions with a schema


async def test_e12_a_question_keeps_its_schema_and_tells_it(store: Store) -> None:
    task = await running(store)
    schema = {"type": "integer", "minimum": 1}
    assert await store.ask(task.id, 1, "q", "How many?", schema=schema)
    (question,) = await store.questions(task.id)
    assert (question.schema, question.approval) == (schema, False)
    task = await get(store, task.id)
    assert task.question is not None
    assert task.question.schema == schema
    (signal,) = await inbox(store)
    assert signal.data["schema"] == schema


# Messages


async def test_e12_messages_arrive_once_and_in_order(
    store: Store, open_another: OpenAnother
) -> None:
    """Though two wait for them: as an attempt that was fenced off may still do."""
    task = await running(store, kind=Kind.PYTHON)
    numbers = [await store.send_message(task.id, ADA, f"m{n}") for n in range(6)]
    assert numbers == [1, 2, 3, 4, 5, 6]
    other = await open_another()
    got = await asyncio.gather(
        *(each.next_message(task.id, 1) for each in (store, other) for _ in range(4))
    )
    texts = sorted(message.text for message in got if message is not None)
    assert texts == [f"m{n}" for n in range(6)]
    assert await store.next_message(task.id, 1) is None
    await store.send_message(task.id, ADA, "late")
    message = await store.next_message(task.id, 1)
    assert message is not None
    assert (message.task, message.number, message.text, message.attempt) == (task.id, 7, "late", 1)
    events = [event.kind for event in await store.events(task.id)]
    assert events.count(EventKind.SENT) == 7


async def test_e12_a_message_arrives_though_nobody_heard_that_it_was_taken(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is lost right after it has written that, and the next look finds it taken."""
    task = await running(store, kind=Kind.PYTHON)
    await store.send_message(task.id, ADA, "one")
    await store.send_message(task.id, ADA, "two")
    count: Any = getattr(store, "_count")  # noqa: B009 - the writes of the record
    lost = 0

    async def lose_one(name: str, **values: Any) -> int:
        nonlocal lost
        done = await count(name, **values)
        if name == "message_taken" and lost == 0:
            lost = 1
            raise StoreAway("the database was lost while it wrote")
        return done

    monkeypatch.setattr(store, "_count", lose_one)
    got = [await store.next_message(task.id, 1) for _ in range(3)]
    assert lost == 1
    assert [message and message.text for message in got] == ["one", "two", None]


async def test_e12_a_stale_attempt_gets_no_message(store: Store) -> None:
    task = await running(store, kind=Kind.PYTHON)
    await store.send_message(task.id, ADA, "one")
    await store.send_message(task.id, ADA, "two")
    first = await store.next_message(task.id, 1)
    assert first is not None
    await store.requeue(task.id, 1, "again")
    await store.claim(task.id, 2, PLACE)
    assert await store.next_message(task.id, 1) is None
    assert not await store.taken(task.id, 1, 2)
    second = await store.next_message(task.id, 2)
    assert second is not None
    assert (second.text, second.attempt) == ("two", 2), "what reached the first came to its end"


@pytest.mark.parametrize("scope", STRANGERS, ids=str)
async def test_promise_2_a_stranger_sends_no_message(store: Store, scope: Any) -> None:
    task = await running(store, kind=Kind.TOOL)
    assert await store.send_message(task.id, scope, "no") is None
    assert await store.next_message(task.id, 1) is None
    assert await store.send_message(task.id, EVERY_SESSION_OF_ADA, "yes") == 1


async def test_e12_what_has_ended_gets_no_message(store: Store) -> None:
    task = await running(store, kind=Kind.TOOL)
    await store.send_message(task.id, ADA, "unread")
    await store.finish(task.id, 1, ENDINGS["succeeded"])
    assert await store.send_message(task.id, ADA, "late") is None
    assert await store.next_message(task.id, 1) is None
    assert await store.messages() == []
    assert await store.send_message("bg_none", ADA, "?") is None


async def test_e12_messages_wait_for_a_task_that_has_not_started(store: Store) -> None:
    task = await queued(store, kind=Kind.PYTHON)
    assert await store.send_message(task.id, ADA, "hello") == 1
    assert await store.messages() == [], "there is nobody yet to hand it on to"
    await store.claim(task.id, 1, PLACE)
    (message,) = await store.messages()
    assert (message.text, message.attempt) == ("hello", 1)


async def test_e12_the_keeper_hands_on_what_is_for_processes_only(store: Store) -> None:
    process = await running(store, kind=Kind.PYTHON)
    waiting = await queued(store, kind=Kind.TOOL)
    await store.claim(waiting.id, 1, IN_AN_APPLICATION)
    await store.send_message(waiting.id, ADA, "for the application")
    await store.send_message(process.id, ADA, "for the process")
    (message,) = await store.messages()
    assert (message.task, message.text) == (process.id, "for the process")
    assert await store.taken(process.id, 1, 1)
    assert not await store.taken(process.id, 1, 1)
    assert await store.messages() == []


async def test_e12_messages_that_nobody_reads_are_bounded(store: Store) -> None:
    task = await running(store, kind=Kind.TOOL)
    await asyncio.gather(*(store.send_message(task.id, ADA, "x") for _ in range(MESSAGES_MAX)))
    with pytest.raises(LimitReached, match=f"{MESSAGES_MAX} messages wait"):
        await store.send_message(task.id, ADA, "one more")
    assert await store.next_message(task.id, 1) is not None
    assert await store.send_message(task.id, ADA, "room again") == MESSAGES_MAX + 1


# What a task tells


async def test_e12_a_task_tells_its_session_while_it_goes_on(store: Store) -> None:
    task = await running(store)
    facts = Facts(data={"text": "half"}, signal=telling(task, "half", "1"))
    assert await store.note(task.id, 1, EventKind.MESSAGE, facts)
    assert await store.note(task.id, 1, EventKind.MESSAGE, facts)  # the same, after a crash
    (signal,) = await inbox(store)
    assert (signal.kind, signal.state) == (SignalKind.MESSAGE, SignalState.PENDING)
    assert signal.text == f"tests ({task.id}) says: half"
    assert signal.data == {"text": "half"}
    assert (await get(store, task.id)).state is State.RUNNING


async def test_e8_a_silent_task_tells_nothing_but_its_questions(store: Store) -> None:
    task = await with_wake(store, "silent")
    await store.ask(task.id, 1, "q", "?")
    await store.answer(task.id, ADA, "yes")
    facts = Facts(signal=telling(task, "half", "1"))
    await store.note(task.id, 1, EventKind.MESSAGE, facts)
    done = await store.finish(task.id, 1, ENDINGS["succeeded"])
    assert done is not None
    assert done.signal_state is None
    assert (await get(store, task.id)).signal_state is None
    asked, told = await inbox(store)
    assert asked.kind is SignalKind.INPUT_REQUIRED
    assert (told.state, told.reason) == (SignalState.DROPPED, "the task is to be silent")


@pytest.mark.parametrize("wake", ["on_terminal", "nonsense"])
async def test_e12_a_status_is_not_told_unless_asked_for(store: Store, wake: str) -> None:
    task = await with_wake(store, wake)
    await store.note(task.id, 1, EventKind.DETAIL, Facts(detail="building"))
    assert await inbox(store) == []


async def test_e12_of_statuses_the_latest_is_told_now_and_then(store: Store) -> None:
    task = await with_wake(store, "on_activity")

    async def says(text: str) -> None:
        await store.note(task.id, 1, EventKind.DETAIL, Facts(detail=text))

    await says("one")
    await says("two")
    (first,) = await inbox(store)
    assert first.text == f"tests ({task.id}) says: two", "nobody was told of the first"
    (claimed,) = await store.claim_signals(ADA, consumer="c", limit=9, lease_s=60)
    await store.acknowledge([claimed.key], ADA)
    await says("three")
    await says("four")
    _, second = await inbox(store)
    assert (second.state, second.data) == (SignalState.PENDING, {"status": "four"})
    assert await store.claim_signals(ADA, consumer="c", limit=9, lease_s=60) == [], "not yet"
    await store.finish(task.id, 1, ENDINGS["succeeded"])
    (end,) = await store.claim_signals(ADA, consumer="c", limit=9, lease_s=60)
    assert end.kind is SignalKind.COMPLETED
    _, second, _ = await inbox(store)
    assert (second.state, second.reason) == (SignalState.DROPPED, "the task has ended")
    assert second.key.startswith(activity_key(task.id))


async def test_e12_a_session_that_wants_no_messages_fills_no_record(store: Store) -> None:
    await store.wish(ADA, [SignalKind.COMPLETED])
    task = await with_wake(store, "on_activity")
    for number in range(20):
        await store.note(task.id, 1, EventKind.DETAIL, Facts(detail=f"at {number}"))
    assert [signal.state for signal in await inbox(store)] == [SignalState.DROPPED]


# Approvals


async def test_c3_an_approval_is_asked_about_a_task_and_not_by_it(store: Store) -> None:
    task = await running(store)
    asked = await store.ask_approval(
        task.id, "ada", "work", "stop-1", "May it be stopped?", grace_s=2
    )
    assert asked is not None
    assert asked.id == task.id
    now = await get(store, task.id)
    assert (now.state, now.question) == (State.RUNNING, None)
    (question,) = await store.questions(task.id)
    assert (question.asker, question.approval, question.open) == ("work", True, True)
    assert question.schema == APPROVAL_SCHEMA
    (signal,) = await inbox(store)
    assert (signal.kind, signal.session) == (SignalKind.INPUT_REQUIRED, "chat")
    assert signal.data["asker"] == "work"


async def test_c3_an_approval_is_answered_by_its_name_alone(store: Store) -> None:
    task = await running(store)
    await store.ask_approval(task.id, "ada", "work", "stop-1", "?", grace_s=2)
    assert await store.answer(task.id, ADA, "yes") is None
    await store.ask(task.id, 1, "own", "Which branch?")
    assert await store.answer(task.id, ADA, "main") == "own"
    assert (await get(store, task.id)).state is State.RUNNING, "the open approval keeps nothing"
    assert await store.answer(task.id, ADAS_OTHER_SESSION, "yes", question="stop-1") is None
    assert await store.answer(task.id, ADA, "yes", question="stop-1") == "stop-1"
    assert [answer.id for answer in await store.answers()] == ["own"], "it is not for the job"
    assert {signal.reason for signal in await inbox(store)} == {"it was answered"}


@pytest.mark.parametrize(("answer", "grace"), [("yes", 2.0), ('"yes"', 2.0), ("no", None)])
async def test_c3_what_is_granted_is_to_end_though_nobody_waits_for_it(
    store: Store, answer: str, grace: float | None
) -> None:
    task = await running(store)
    await store.ask_approval(task.id, "ada", "work", "stop-1", "?", grace_s=2)
    assert (await get(store, task.id)).stop is None
    assert await store.answer(task.id, ADA, answer, question="stop-1") == "stop-1"
    stop = (await get(store, task.id)).stop
    assert (stop.grace_s if stop else None) == grace


async def test_c3_what_waits_for_its_start_ends_when_that_is_granted(store: Store) -> None:
    task = await queued(store)
    await store.ask_approval(task.id, "ada", "work", "stop-1", "?", grace_s=2)
    assert await store.answer(task.id, ADA, "yes", question="stop-1") == "stop-1"
    assert (await get(store, task.id)).state is State.CANCELED


async def test_c3_an_approval_is_withdrawn(store: Store) -> None:
    task = await running(store)
    await store.ask_approval(task.id, "ada", "work", "stop-1", "?", grace_s=2)
    assert await store.withdraw(task.id, 1, "stop-1")
    assert await store.answer(task.id, ADA, "yes", question="stop-1") is None
    assert (await get(store, task.id)).state is State.RUNNING
    kinds = [event.kind for event in await store.events(task.id)][2:]
    assert kinds == [EventKind.ASKED, EventKind.WITHDRAWN]


async def test_c3_there_is_no_approval_for_what_is_not_the_owners_or_has_ended(
    store: Store,
) -> None:
    task = await running(store)
    assert await store.ask_approval(task.id, "bob", "chat", "q", "?", grace_s=2) is None
    assert await store.ask_approval("bg_none", "ada", "work", "q", "?", grace_s=2) is None
    await store.finish(task.id, 1, ENDINGS["succeeded"])
    assert await store.ask_approval(task.id, "ada", "work", "q", "?", grace_s=2) is None
    assert await store.questions(task.id) == []


# Holding and postponing


async def test_a8_what_is_postponed_was_not_tried_and_comes_again(store: Store) -> None:
    task = await ended(store)
    (claimed,) = await store.claim_signals(ADA, consumer="c", limit=9, lease_s=60)
    assert claimed.tries == 1
    assert await store.postpone_signals([claimed.key], 60, consumer="other") == 0
    assert await store.postpone_signals([claimed.key], 3600, consumer="c") == 1
    (signal,) = await inbox(store)
    assert (signal.state, signal.tries) == (SignalState.PENDING, 0)
    assert await store.claim_signals(ADA, consumer="d", limit=9, lease_s=60) == []
    other = await ended(store)
    (newer,) = await store.claim_signals(ADA, consumer="d", limit=9, lease_s=60)
    assert newer.task == other.id
    assert await store.acknowledge([claimed.key], ADA) == 1
    assert (await get(store, task.id)).signal_state is SignalState.DELIVERED


async def test_a8_what_is_postponed_to_now_is_there_now(store: Store) -> None:
    await ended(store)
    (claimed,) = await store.claim_signals(ADA, consumer="c", limit=9, lease_s=60)
    await store.postpone_signals([claimed.key], 0, consumer="c")
    (again,) = await store.claim_signals(ADA, consumer="d", limit=9, lease_s=60)
    assert (again.key, again.tries) == (claimed.key, 1)


async def test_a8_a_lease_that_is_renewed_does_not_run_out(store: Store) -> None:
    await ended(store)
    await ended(store)
    first, second = await store.claim_signals(ADA, consumer="c", limit=9, lease_s=0)
    assert await store.renew_signals([first.key], 3600, "c") == 1
    assert await store.renew_signals([first.key], 3600, "d") == 0
    free = await store.claim_signals(ADA, consumer="d", limit=9, lease_s=60)
    assert [signal.key for signal in free] == [second.key]


async def test_x1_a_failed_one_waits_for_its_time_and_a_resent_one_does_not(store: Store) -> None:
    await ended(store)
    (claimed,) = await store.claim_signals(ADA, consumer="c", limit=9, lease_s=60)
    later = store.now() + 3600 * clock.SECOND
    assert await store.delivery_failed(claimed.key, "no", later, consumer="c")
    assert await store.claim_signals(ADA, consumer="d", limit=9, lease_s=60) == []
    assert await store.resend(claimed.key, ADA)
    assert len(await store.claim_signals(ADA, consumer="d", limit=9, lease_s=60)) == 1


# Sessions that end


async def test_d8_a_session_that_has_ended_is_told_nothing(store: Store) -> None:
    before = await ended(store)
    going_on = await running(store)
    elsewhere = await ended(store, scope=ADAS_OTHER_SESSION)
    await store.claim_signals(ADA, consumer="c", limit=1, lease_s=60)
    assert not await store.session_ended(ADA)
    await store.end_session(ADA)
    await store.end_session(ADA)
    assert await store.session_ended(ADA)
    assert not await store.session_ended(BOB)
    await store.finish(going_on.id, 1, ENDINGS["exit"])
    signals = await inbox(store)
    assert [signal.task for signal in signals] == [before.id, going_on.id]
    assert {(signal.state, signal.reason) for signal in signals} == {
        (SignalState.DROPPED, "the session was deleted")
    }
    assert await store.acknowledge([signals[0].key], ADA, consumer="c") == 0
    (other,) = await store.signals(ADAS_OTHER_SESSION)
    assert (other.task, other.state) == (elsewhere.id, SignalState.PENDING)


async def test_d8_to_start_something_brings_a_session_back(store: Store) -> None:
    await store.end_session(ADA)
    await queued(store, scope=BOB)
    assert await store.session_ended(ADA)
    await ended(store)
    assert not await store.session_ended(ADA)
    (signal,) = await inbox(store)
    assert signal.state is SignalState.PENDING


async def test_d8_a_task_that_an_application_begins_brings_it_back_too(store: Store) -> None:
    await store.end_session(ADA)
    await store.begin(new_task(kind=Kind.TOOL), IN_AN_APPLICATION, limit=None)
    assert not await store.session_ended(ADA)
