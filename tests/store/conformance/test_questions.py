"""Questions: asked once, answered once, by whom they concern; and how far a report is taken."""

import asyncio

import pytest

from backburner.model.events import EventKind
from backburner.model.signals import SignalKind, SignalState, ask_key
from backburner.model.states import State
from backburner.model.task import Progress, Task
from backburner.store.protocol import Facts, Result, Store
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ENDINGS,
    EVERY_SESSION_OF_ADA,
    PLACE,
    STRANGERS,
    get,
    queued,
    running,
)


async def asking(store: Store, *questions: str) -> Task:
    task = await running(store)
    for question in questions:
        assert await store.ask(task.id, 1, question, f"{question}?")
    return await get(store, task.id)


async def kinds(store: Store, task: Task) -> list[EventKind]:
    return [event.kind for event in await store.events(task.id)][2:]


# Asking


async def test_x5_a_question_changes_the_state_and_tells_in_one_go(store: Store) -> None:
    task = await asking(store, "q1")
    assert task.state is State.INPUT_REQUIRED
    assert task.question is not None
    assert (task.question.id, task.question.text, task.question.open) == ("q1", "q1?", True)
    (event,) = (await store.events(task.id))[2:]
    assert (event.kind, event.data) == (EventKind.ASKED, {"question": "q1", "text": "q1?"})
    (signal,) = await store.signals(ADA)
    assert (signal.kind, signal.key) == (SignalKind.INPUT_REQUIRED, ask_key(task.id, 1, "q1"))
    assert signal.text == f"tests ({task.id}) asks: q1?"
    assert signal.data == {"question": "q1", "text": "q1?"}


async def test_x5_the_same_question_again_is_asked_once(
    store: Store, open_another: OpenAnother
) -> None:
    """As a keeper does that died between the commit and knowing of it."""
    task = await running(store)
    other = await open_another()
    asked = await asyncio.gather(
        *(each.ask(task.id, 1, "q", "really?") for each in (store, other) for _ in range(5))
    )
    assert sorted(asked) == [False] * 9 + [True]
    assert len(await store.questions(task.id)) == 1
    assert len(await store.signals(ADA)) == 1
    await store.answer(task.id, ADA, "yes")
    assert not await store.ask(task.id, 1, "q", "really?")
    assert (await get(store, task.id)).state is State.RUNNING


async def test_x5_only_a_running_attempt_asks(store: Store) -> None:
    waiting = await queued(store)
    with pytest.raises(ValueError, match="asks before it runs"):
        await store.ask(waiting.id, 1, "q", "?")
    task = await running(store)
    assert not await store.ask(task.id, 2, "q", "?"), "a stale attempt"
    await store.finish(task.id, 1, ENDINGS["succeeded"])
    assert not await store.ask(task.id, 1, "q", "?")
    assert not await store.ask("bg_none", 1, "q", "?")
    assert await store.questions(task.id) == await store.questions(waiting.id) == []


async def test_x5_several_questions_are_open_until_the_last_is_answered(store: Store) -> None:
    task = await asking(store, "a", "b", "c")
    assert [each.id for each in await store.questions(task.id)] == ["a", "b", "c"]
    assert await store.answer(task.id, ADA, "1") == "a"
    assert await store.answer(task.id, ADA, "3", question="c") == "c"
    task = await get(store, task.id)
    assert task.state is State.INPUT_REQUIRED
    assert task.question is not None
    assert task.question.id == "b"
    assert await store.answer(task.id, ADA, "2") == "b"
    task = await get(store, task.id)
    assert (task.state, task.question) == (State.RUNNING, None)
    assert [each.answer for each in await store.questions(task.id)] == ["1", "2", "3"]
    assert await kinds(store, task) == [EventKind.ASKED] * 3 + [EventKind.ANSWERED] * 3


# Answering


@pytest.mark.parametrize("scope", STRANGERS, ids=str)
async def test_promise_2_a_stranger_cannot_answer(store: Store, scope: object) -> None:
    task = await asking(store, "q")
    assert await store.answer(task.id, scope, "no") is None  # pyright: ignore[reportArgumentType]
    assert await store.answer(task.id, EVERY_SESSION_OF_ADA, "yes") == "q"


async def test_x5_one_of_many_answers_counts(store: Store, open_another: OpenAnother) -> None:
    task = await asking(store, "q")
    stores = [store, await open_another(), await open_another()]
    answered = await asyncio.gather(
        *(stores[number % 3].answer(task.id, ADA, str(number)) for number in range(9))
    )
    assert [each for each in answered if each is not None] == ["q"]
    (question,) = await store.questions(task.id)
    assert question.answer == str(answered.index("q"))
    assert not question.open


async def test_x5_what_nobody_asked_is_not_answered(store: Store) -> None:
    task = await running(store)
    assert await store.answer(task.id, ADA, "yes") is None
    await store.ask(task.id, 1, "q", "?")
    assert await store.answer(task.id, ADA, "yes", question="other") is None
    assert await store.answer("bg_none", ADA, "yes") is None
    await store.finish(task.id, 1, ENDINGS["succeeded"])
    assert await store.answer(task.id, ADA, "yes") is None
    (question,) = await store.questions(task.id)
    assert question.answer is None


@pytest.mark.parametrize("answer", ["", "a\nb\r\n", "x" * 2**20, "nul\0é𝄞"])
async def test_x5_an_answer_is_kept_as_it_is(store: Store, answer: str) -> None:
    task = await asking(store, "q")
    assert await store.answer(task.id, ADA, answer) == "q"
    (waiting,) = await store.answers()
    assert (waiting.task, waiting.attempt, waiting.id) == (task.id, 1, "q")
    assert waiting.answer == answer


async def test_x1_nobody_is_told_of_a_question_that_is_no_longer_open(store: Store) -> None:
    task = await asking(store, "answered", "withdrawn", "delivered", "ended")
    claimed = await store.claim_signals(ADA, consumer="c", limit=10, lease_s=60)
    await store.acknowledge([claimed[2].key], ADA)
    await store.answer(task.id, ADA, "yes")
    await store.withdraw(task.id, 1, "withdrawn")
    await store.answer(task.id, ADA, "yes", question="delivered")
    await store.finish(task.id, 1, ENDINGS["succeeded"])
    signals = await store.signals(ADA)
    assert [(each.state, each.reason) for each in signals[:4]] == [
        (SignalState.DROPPED, "it was answered"),
        (SignalState.DROPPED, "nobody waits for the answer"),
        (SignalState.DELIVERED, None),
        (SignalState.DROPPED, "the task has ended"),
    ]


# Withdrawing and handing on


async def test_x5_a_question_is_withdrawn_unless_it_was_answered(store: Store) -> None:
    task = await asking(store, "a", "b")
    assert await store.answer(task.id, ADA, "yes", question="a") == "a"
    assert not await store.withdraw(task.id, 1, "a")
    assert not await store.withdraw(task.id, 2, "b"), "a stale attempt"
    assert not await store.withdraw(task.id, 1, "other")
    assert await store.withdraw(task.id, 1, "b")
    assert not await store.withdraw(task.id, 1, "b")
    assert (await get(store, task.id)).state is State.RUNNING
    assert await store.answer(task.id, ADA, "late", question="b") is None
    assert [each.withdrawn for each in await store.questions(task.id)] == [False, True]


async def test_x5_an_answer_waits_until_it_was_handed_on(store: Store) -> None:
    task = await asking(store, "a", "b")
    assert not await store.handed_on(task.id, 1, "a"), "it has no answer yet"
    await store.answer(task.id, ADA, "1")
    await store.answer(task.id, ADA, "2")
    assert [each.id for each in await store.answers()] == ["a", "b"]
    assert await store.handed_on(task.id, 1, "a")
    assert not await store.handed_on(task.id, 1, "a")
    assert not await store.handed_on(task.id, 2, "b"), "a stale attempt"
    assert [each.id for each in await store.answers()] == ["b"]
    await store.finish(task.id, 1, ENDINGS["succeeded"])
    assert await store.answers() == [], "nobody waits for it any more"


async def test_x5_questions_belong_to_an_attempt(store: Store) -> None:
    task = await asking(store, "q", "r")
    await store.answer(task.id, ADA, "for the first")
    await store.requeue(task.id, 1, "again")
    assert await store.questions(task.id) == await store.answers() == []
    assert await store.answer(task.id, ADA, "late", question="r") is None
    await store.claim(task.id, 2, PLACE)
    assert await store.ask(task.id, 2, "q", "once more?")
    (question,) = await store.questions(task.id)
    assert (question.attempt, question.text) == (2, "once more?")
    assert len(await store.signals(ADA)) == 3, "it is another question"


async def test_questions_go_with_their_task(store: Store) -> None:
    task = await asking(store, "q")
    await store.finish(task.id, 1, ENDINGS["succeeded"])
    assert await store.forget([task.id]) == 1
    assert await store.questions(task.id) == []


# How far the report of a job is taken


async def test_x5_what_is_taken_and_how_far_that_is_are_one_change(store: Store) -> None:
    task = await running(store)
    assert task.reported == 0
    await store.note(task.id, 1, EventKind.DETAIL, Facts(detail="x", reported=10))
    await store.ask(task.id, 1, "q", "?", reported=20)
    assert (await get(store, task.id)).reported == 20
    await store.withdraw(task.id, 1, "q", reported=30)
    progress = Progress(1, 2)
    await store.note(task.id, 1, EventKind.PROGRESS, Facts(progress=progress, reported=40))
    await store.note(task.id, 1, EventKind.RESULT, Facts(result=Result({"n": 1}), reported=50))
    task = await get(store, task.id)
    assert (task.reported, task.detail, task.progress, task.result) == (50, "x", progress, {"n": 1})
    # Also where there was nothing to change any more, so that it is not looked at again.
    await store.ask(task.id, 1, "q", "?", reported=60)
    await store.withdraw(task.id, 1, "other", reported=70)
    assert (await get(store, task.id)).reported == 70


async def test_x5_a_stale_attempt_takes_nothing(store: Store) -> None:
    task = await running(store)
    await store.note(task.id, 1, EventKind.DETAIL, Facts(reported=10))
    await store.requeue(task.id, 1, "again")
    assert (await get(store, task.id)).reported == 0, "another attempt, another report"
    await store.claim(task.id, 2, PLACE)
    await store.ask(task.id, 1, "q", "?", reported=99)
    await store.withdraw(task.id, 1, "q", reported=99)
    assert not await store.note(task.id, 1, EventKind.DETAIL, Facts(reported=99))
    task = await get(store, task.id)
    assert (task.reported, task.state) == (0, State.RUNNING)


async def test_x5_a_result_that_was_reported_is_that_of_the_end(store: Store) -> None:
    task = await running(store)
    await store.note(task.id, 1, EventKind.RESULT, Facts(result=Result([1]), reported=5))
    done = await store.finish(task.id, 1, ENDINGS["exit"])
    assert done is not None
    assert done.result == [1]
    assert (await get(store, task.id)).result == [1]
