"""X1: who holds what is to be delivered, what becomes of it, and when it is sent again."""

import asyncio
from dataclasses import replace

from backburner.model import clock
from backburner.model.channels import QUIET
from backburner.model.clock import SECOND
from backburner.model.signals import GIVEN_UP, INBOX, SignalKind, SignalState, ask_key, end_key
from backburner.model.states import State
from backburner.store.protocol import Store
from tests.store.conformance.channels import channel, claim, deliver, keys, the_push
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ADAS_OTHER_SESSION,
    BOB,
    ENDINGS,
    EVERY_SESSION_OF_ADA,
    ended,
    get,
    running,
)
from tests.waiting import wait_until_async

HOUR = 3600 * SECOND


# Claiming


async def test_x1_one_of_each_channel_is_claimed_oldest_first(store: Store) -> None:
    await store.add_channel(channel("a"))
    await store.add_channel(channel("b", kinds=frozenset({SignalKind.FAILED})))
    tasks = [await ended(store), await ended(store, ending=ENDINGS["exit"]), await ended(store)]
    ids = [task.id for task in tasks]
    held = await claim(store)
    assert keys(held) == [f"{ids[0]}:end@a", f"{ids[1]}:end@b"]
    assert await claim(store) == [], "one at a time of each, whoever asks"
    await deliver(store, held[1:])
    assert await claim(store) == []
    await deliver(store, held[:1])
    (second,) = await claim(store, limit=1)
    assert (second.key, second.state, second.tries) == (
        f"{ids[1]}:end@a",
        SignalState.CLAIMED,
        1,
    )
    await deliver(store, [second])
    assert keys(await claim(store)) == [f"{ids[2]}:end@a"]
    assert await claim(store) == []


async def test_x1_channels_of_one_name_do_not_wait_for_each_other(store: Store) -> None:
    for owner in ("ada", "bob"):
        await store.add_channel(replace(channel(), owner=owner))
    mine, other = await ended(store), await ended(store, scope=BOB)
    (first,) = await claim(store, limit=1)
    assert first.task == mine.id
    assert [signal.task for signal in await claim(store)] == [other.id]


async def test_x1_the_inbox_and_the_channels_are_apart(store: Store) -> None:
    """Who pulls takes nothing from a channel, and acknowledges nothing for it."""
    await store.add_channel(channel())
    task = await ended(store)
    inbox = await store.claim_signals(ADA, consumer="reader", limit=9, lease_s=60)
    assert keys(inbox) == [end_key(task.id)]
    both = keys(await store.signals(ADA, task=task.id))
    assert await store.acknowledge(both, ADA) == 1
    (push,) = await claim(store)
    assert await store.acknowledge([push.key], ADA) == 0
    assert await store.acknowledge([push.key], ADA, consumer="two") == 0
    assert await store.acknowledge([push.key], BOB, consumer="one") == 0
    assert await store.acknowledge([push.key], ADA, consumer="one") == 1
    assert (await the_push(store, task)).state is SignalState.DELIVERED


async def test_x1_first_tries_come_before_further_ones(store: Store) -> None:
    await store.add_channel(channel())
    first = await ended(store)
    (held,) = await claim(store)
    await store.delivery_failed(held.key, "no", store.now(), consumer="one")
    second = await ended(store)
    held_now = await claim(store)
    assert [signal.task for signal in held_now] == [second.id]
    await deliver(store, held_now)
    assert [signal.task for signal in await claim(store)] == [first.id]


async def test_x1_two_deliverers_never_hold_the_same(
    store: Store, open_another: OpenAnother
) -> None:
    handles = [store, await open_another(), await open_another()]
    for name in "abcd":
        await store.add_channel(channel(name))
    tasks = [await ended(store) for _ in range(10)]
    wanted = {f"{end_key(task.id)}@{name}" for task in tasks for name in "abcd"}
    got: list[str] = []

    while len(got) < len(wanted):
        claims = await asyncio.gather(*(claim(handles[n % 3], f"c{n}", limit=2) for n in range(6)))
        assert any(claims)
        for number, claimed in enumerate(claims):
            got.extend(keys(claimed))
            await deliver(store, claimed, f"c{number}")
    assert sorted(got) == sorted(wanted)


async def test_x1_a_late_deliverer_changes_nothing_of_its_successors(store: Store) -> None:
    await store.add_channel(channel())
    task = await ended(store)
    (first,) = await claim(store, "late", lease_s=0)
    (again,) = await wait_until_async(lambda: claim(store, "next"))
    assert (again.key, again.tries) == (first.key, 2)
    held = await the_push(store, task)
    assert await store.acknowledge([first.key], ADA, consumer="late") == 0
    assert await store.delivery_failed(first.key, "no", 0, consumer="late") is False
    assert await store.drop_signal(first.key, "no", consumer="late") is False
    assert await the_push(store, task) == held
    assert await store.drop_signal(first.key, "no", consumer="next") is True


async def test_x1_what_the_dead_held_is_given_back(store: Store, open_another: OpenAnother) -> None:
    await store.add_channel(channel())
    task = await ended(store)
    await store.claim_signals(ADA, consumer="reader", limit=9, lease_s=60)
    (held,) = await claim(store, "dead", lease_s=3600)
    other = await open_another()
    assert await other.release_deliveries() == 1
    assert await other.release_deliveries() == 0
    assert (await the_push(store, task)).state is SignalState.PENDING
    (again,) = await claim(other, "alive")
    assert (again.key, again.tries) == (held.key, 2)
    assert (await store.signals(ADA, channel=INBOX))[0].state is SignalState.CLAIMED


# When


async def test_x1_when_the_next_delivery_is_due_is_known(store: Store) -> None:
    assert await store.next_delivery() is None
    await ended(store)
    assert await store.next_delivery() is None, "the inbox is nobody's to deliver"
    await store.add_channel(channel("a"))
    await store.add_channel(channel("b"))
    await ended(store)
    assert await store.next_delivery() == 0
    (first,) = await claim(store, limit=1, lease_s=100)
    assert await store.next_delivery() == 0, "the other channel is free"
    (second,) = await claim(store, lease_s=100)
    before = clock.boot_now()
    due = await store.next_delivery()
    assert due is not None
    assert before < due <= before + 100 * SECOND
    await store.delivery_failed(first.key, "no", store.now() + HOUR, consumer="one")
    await store.acknowledge([second.key], ADA, consumer="one")
    due = await store.next_delivery()
    assert due is not None
    assert before + HOUR - SECOND < due <= clock.boot_now() + HOUR
    failed = next(s for s in await store.signals(ADA, channel="a"))
    assert failed.retry_at is not None
    assert abs(failed.retry_at - store.now() - HOUR) < 60 * SECOND
    await store.drop_signal(first.key, "given up")
    assert await store.next_delivery() is None
    assert (await store.signals(ADA, channel="a"))[0].retry_at is None


# Sending again


async def test_x1_a_dead_letter_is_sent_again(store: Store) -> None:
    await store.add_channel(channel())
    task = await ended(store)
    (held,) = await claim(store)
    assert await store.resend(held.key, ADA) is False, "it is under way"
    await store.drop_signal(held.key, "given up", consumer="one")
    assert await store.resend(held.key, BOB) is False
    assert await store.resend(held.key, ADAS_OTHER_SESSION) is False
    assert await store.resend(held.key, ADA) is True
    again = await the_push(store, task)
    assert (again.state, again.tries, again.reason) == (SignalState.PENDING, 0, None)
    assert await store.resend(held.key, ADA) is False
    assert keys(await claim(store)) == [held.key]
    await store.acknowledge([held.key], ADA, consumer="one")
    assert await store.resend(held.key, ADA) is False, "delivered is final"


async def test_x1_one_that_waits_for_its_next_try_is_sent_now(store: Store) -> None:
    await store.add_channel(channel())
    await ended(store)
    (held,) = await claim(store)
    await store.delivery_failed(held.key, "no", store.now() + HOUR, consumer="one")
    assert await claim(store) == []
    assert await store.resend(held.key, EVERY_SESSION_OF_ADA) is True
    assert keys(await claim(store)) == [held.key]


async def test_x1_what_was_dropped_on_purpose_is_not_sent_again(store: Store) -> None:
    await store.wish(ADA, QUIET)
    quiet = await ended(store)
    await store.wish(ADA, None)
    assert await store.resend(end_key(quiet.id), ADA) is False
    stopped = await ended(store)
    await store.drop_signal(end_key(stopped.id), "it was stopped on request")
    assert await store.resend(end_key(stopped.id), ADA) is False
    given_up = await ended(store)
    await store.drop_signal(end_key(given_up.id), f"{GIVEN_UP} 6 tries: no")
    waits = await ended(store)
    await store.delivery_failed(end_key(waits.id), "no", store.now() + HOUR)
    assert await store.resend(end_key(given_up.id), ADA) is True
    assert await store.resend(end_key(waits.id), ADA) is True
    await store.drop_signal(end_key(given_up.id), f"{GIVEN_UP} 6 tries: no")
    await store.end_session(ADA)
    for task in (given_up, waits):
        assert await store.resend(end_key(task.id), ADA) is False, "the session was deleted"


async def test_x1_only_a_question_that_is_open_is_told_again(store: Store) -> None:
    """By its own name: that the task asks something else is no reason."""
    task = await running(store)
    for name in ("first", "second"):
        await store.ask(task.id, 1, name, "Which?")
        await store.drop_signal(ask_key(task.id, 1, name), f"{GIVEN_UP} 6 tries: no")
    await store.answer(task.id, ADA, "main", question="first")
    assert await store.resend(ask_key(task.id, 1, "first"), ADA) is False
    assert await store.resend(ask_key(task.id, 1, "second"), ADA) is True


# Pausing


async def test_a_paused_channel_drops_with_its_reason_until_it_goes_on(store: Store) -> None:
    await store.add_channel(channel())
    before = await ended(store)
    assert await store.pause_channel("hook", "bob", "gone") is False
    assert await store.pause_channel("hook", "ada", "gone") is True
    assert await store.pause_channel("hook", "ada", "again") is False
    assert (await store.channels())[0].paused == "gone"
    meanwhile = await ended(store)
    assert meanwhile.signal_state is SignalState.PENDING, "the inbox is not concerned"
    for task in (before, meanwhile):
        dropped = await the_push(store, task)
        assert (dropped.state, dropped.reason) == (SignalState.DROPPED, "gone")
        assert await store.resend(dropped.key, ADA) is False
    assert await store.resume_channel("hook", "bob") is False
    assert await store.resume_channel("hook", "ada") is True
    assert await store.resume_channel("hook", "ada") is False
    assert await store.resend(f"{end_key(before.id)}@hook", ADA) is True
    assert (await the_push(store, await ended(store))).state is SignalState.PENDING


async def test_a_task_is_not_forgotten_before_its_channels_are_done_with_it(store: Store) -> None:
    await store.add_channel(channel())
    task = await ended(store)
    assert (await get(store, task.id)).state is State.SUCCEEDED
    assert await store.prunable(store.now() + 1, None, 10) == []
    assert await store.forget([task.id]) == 0
    (delivery,) = await store.claim_deliveries(consumer="c", limit=9, lease_s=60)
    assert await store.drop_signal(delivery.key, "given up", consumer="c")
    assert await store.prunable(store.now() + 1, None, 10) == [await get(store, task.id)]
    assert await store.forget([task.id]) == 1
    assert await store.next_delivery() is None


async def test_x10_owners_take_turns_at_deliveries(store: Store) -> None:
    """However many channels of one hang, the next one's letter is among the next that go."""
    for n in range(4):
        await store.add_channel(channel(f"hangs{n}"))
    await store.add_channel(channel(owner="bob"))
    await ended(store)
    await ended(store, scope=BOB)
    first = await claim(store, limit=2)
    assert [signal.owner for signal in first] == ["ada", "bob"]
    await deliver(store, first[1:])
    await ended(store, scope=BOB)
    (after,) = await claim(store, limit=1)
    assert after.owner == "bob", "ada has one under way"
    assert len(await claim(store)) == 3
