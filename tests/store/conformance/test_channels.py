"""X1: which channels there are, what is pushed through them, what a session wishes to be told."""

import asyncio

import pytest

from backburner.model.channels import QUIET, ChannelKind
from backburner.model.clock import SECOND
from backburner.model.errors import Conflict
from backburner.model.events import EventKind
from backburner.model.signals import INBOX, NewSignal, SignalKind, SignalState, end_key
from backburner.store.protocol import Facts, Store
from tests.store.conformance.channels import channel, claim, keys, pushed, the_push
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.making import (
    ADA,
    ADAS_OTHER_SESSION,
    BOB,
    ENDINGS,
    PLACE,
    PLENTY,
    ended,
    get,
    new_task,
    running,
)

HOUR = 3600 * SECOND


# Adding and removing


async def test_channels_are_kept_as_they_were_given(
    store: Store, open_another: OpenAnother
) -> None:
    kinds = frozenset({SignalKind.FAILED, SignalKind.READY})
    given = [
        channel("all", session=None),
        channel("some", kinds=kinds),
        channel(
            "web", kind=ChannelKind.WEBHOOK, target="https://x", secret="f", allow_private=True
        ),
        channel("web", owner="bob", kind=ChannelKind.DESKTOP, target=""),
    ]
    for each in given:
        await store.add_channel(each)
    assert await (await open_another()).channels() == given


async def test_a_name_is_taken_once_by_each_owner(store: Store) -> None:
    await store.add_channel(channel())
    with pytest.raises(Conflict, match="hook"):
        await store.add_channel(channel(target="other"))
    await store.add_channel(channel(owner="bob"))
    assert [each.target for each in await store.channels()] == ["cat", "cat"]


async def test_of_many_that_add_the_same_channel_one_wins(
    store: Store, open_another: OpenAnother
) -> None:
    handles = [store, await open_another()]
    results = await asyncio.gather(
        *(handles[n % 2].add_channel(channel(target=str(n))) for n in range(10)),
        return_exceptions=True,
    )
    assert sum(result is None for result in results) == 1
    assert all(result is None or isinstance(result, Conflict) for result in results)


async def test_a_removed_channel_delivers_nothing_and_says_so(store: Store) -> None:
    await store.add_channel(channel())
    await store.add_channel(channel(owner="bob"))
    task = await ended(store)
    bobs = await ended(store, scope=BOB)
    assert await store.remove_channel("hook", "carl") is False
    assert await store.remove_channel("hook", "ada") is True
    assert await store.remove_channel("hook", "ada") is False
    dropped = await the_push(store, task)
    assert (dropped.state, dropped.reason) == (SignalState.DROPPED, "the channel was removed")
    assert await store.resend(dropped.key, ADA) is False
    (other,) = await pushed(store, bobs, BOB)
    assert other.state is SignalState.PENDING
    assert await pushed(store, await ended(store)) == []


async def test_what_a_removed_channel_was_delivering_stays_dropped(store: Store) -> None:
    await store.add_channel(channel())
    task = await ended(store)
    (held,) = await claim(store)
    await store.remove_channel("hook", "ada")
    assert await store.acknowledge([held.key], ADA, consumer="one") == 0
    assert (await the_push(store, task)).state is SignalState.DROPPED


# Who is told


async def test_x1_an_end_is_pushed_through_each_channel_that_wants_it(store: Store) -> None:
    failed = frozenset({SignalKind.FAILED})
    for each in (
        channel("one"),
        channel("two", session=None),
        channel("failures", kinds=failed),
        channel("elsewhere", session="work"),
        channel("bobs", owner="bob", session=None),
    ):
        await store.add_channel(each)
    good = await ended(store)
    bad = await ended(store, ending=ENDINGS["exit"])
    assert keys(await pushed(store, good)) == [f"{good.id}:end@one", f"{good.id}:end@two"]
    assert {signal.channel for signal in await pushed(store, bad)} == {"one", "two", "failures"}
    other = await ended(store, scope=ADAS_OTHER_SESSION)
    assert {signal.channel for signal in await pushed(store, other)} == {"two", "elsewhere"}
    (told,) = await store.signals(ADA, task=good.id, channel=INBOX)
    push = (await pushed(store, good))[0]
    assert (push.kind, push.text, push.data) == (told.kind, told.text, told.data)
    assert (await get(store, good.id)).signal_state is SignalState.PENDING


async def test_a_channel_is_told_of_what_comes_and_not_of_what_was(store: Store) -> None:
    task = await running(store)
    match = NewSignal(SignalKind.MATCH, f"{task.id}:match:1", "a match", {})
    await store.note(task.id, 1, EventKind.MATCH, Facts(signal=match))
    await store.add_channel(channel())
    await store.note(task.id, 1, EventKind.MATCH, Facts(signal=match))  # after a crash of ours
    assert await pushed(store, task) == []
    await store.finish(task.id, 1, ENDINGS["exit"])
    assert keys(await pushed(store, task)) == [f"{end_key(task.id)}@hook"]


async def test_x1_a_question_is_pushed_and_no_more_once_it_is_answered(store: Store) -> None:
    await store.add_channel(channel())
    task = await running(store)
    assert await store.ask(task.id, 1, "q1", "Really?")
    asked = await the_push(store, task)
    assert (asked.kind, asked.state) == (SignalKind.INPUT_REQUIRED, SignalState.PENDING)
    (held,) = await claim(store)
    await store.drop_signal(held.key, "given up", consumer="one")
    assert await store.resend(held.key, ADA) is True
    await store.answer(task.id, ADA, "yes")
    assert (await the_push(store, task)).state is SignalState.DROPPED
    assert await store.resend(held.key, ADA) is False, "nobody asks that any more"


async def test_a_task_that_asks_for_it_is_shown_on_the_screen(store: Store) -> None:
    """Not that it was stopped: whoever did that knows."""
    spec = {"command": "x", "notify": "unix:path=/bus"}
    for ending, expected in (("succeeded", ["notify"]), ("exit", ["notify"]), ("canceled", [])):
        task = await store.create(new_task(spec=spec), limit=PLENTY, ending=None)
        await store.claim(task.id, 1, PLACE)
        await store.finish(task.id, 1, ENDINGS[ending])
        assert [signal.channel for signal in await pushed(store, task)] == expected


# What a session wishes


async def test_a_session_is_told_what_it_wishes(store: Store, open_another: OpenAnother) -> None:
    other = await open_another()
    await store.add_channel(channel())
    assert await store.wished(ADA) is None
    await store.wish(ADA, {SignalKind.FAILED})
    assert await other.wished(ADA) == {SignalKind.FAILED}
    assert await other.wished(ADAS_OTHER_SESSION) is None
    good = await ended(store)
    bad = await ended(store, ending=ENDINGS["exit"])
    (muted,) = await store.signals(ADA, task=good.id)
    assert (muted.state, muted.reason) == (
        SignalState.DROPPED,
        "the session does not wish to be told",
    )
    assert [s.state for s in await store.signals(ADA, task=bad.id)] == [SignalState.PENDING] * 2
    assert (await get(store, good.id)).signal_state is SignalState.DROPPED
    finished = await ended(store)
    assert finished.signal_state is SignalState.DROPPED, "the answer of finish says it, too"


async def test_a_quiet_session_is_told_nothing_until_it_wishes_again(store: Store) -> None:
    await store.add_channel(channel(session=None))
    await store.wish(ADA, QUIET)
    assert await store.wished(ADA) == frozenset()
    task = await ended(store, ending=ENDINGS["exit"])
    assert await pushed(store, task) == []
    assert await claim(store) == []
    assert len(await pushed(store, await ended(store, scope=ADAS_OTHER_SESSION))) == 1
    await store.wish(ADA, None)
    assert await store.wished(ADA) is None
    assert len(await pushed(store, await ended(store))) == 1
    (quiet,) = await store.signals(ADA, task=task.id)
    assert quiet.state is SignalState.DROPPED, "what it did not wish to hear stays unsaid"


async def test_a_quiet_session_sees_what_a_task_was_asked_to_show(store: Store) -> None:
    await store.wish(ADA, QUIET)
    task = await store.create(new_task(spec={"notify": ""}), limit=PLENTY, ending=ENDINGS["spawn"])
    assert [signal.channel for signal in await pushed(store, task)] == ["notify"]
