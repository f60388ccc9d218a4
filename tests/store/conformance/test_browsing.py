"""Looking around: children, what has ended of late, sessions, the newest signals."""

from dataclasses import replace

from backburner.model.signals import INBOX, SignalState
from backburner.model.states import Kind, State
from backburner.store.protocol import Scope, Store
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


async def test_children_are_those_that_name_it_and_those_of_its_session(store: Store) -> None:
    agent = await queued(store, "bg_agent", kind=Kind.AGENT)
    own = await queued(store, scope=Scope("ada", agent.id))
    started = await store.create(replace(new_task(), parent=agent.id), limit=PLENTY)
    both = await store.create(
        replace(new_task(scope=Scope("ada", agent.id)), parent=agent.id), limit=PLENTY
    )
    await store.create(replace(new_task(scope=BOB), parent=agent.id), limit=PLENTY)
    await queued(store, scope=Scope("bob", agent.id))
    await queued(store)
    found = await store.children(agent.id, EVERY_SESSION_OF_ADA)
    assert [task.id for task in found] == [both.id, started.id, own.id]
    assert [task.id for task in await store.children(agent.id, ADA)] == [started.id]
    assert len(await store.children(agent.id, EVERY_SESSION_OF_ADA, limit=2)) == 2
    assert await store.children("none", EVERY_SESSION_OF_ADA) == []


async def test_what_has_ended_of_late_the_last_first(store: Store) -> None:
    first = await ended(store, ending=ENDINGS["with a result"])
    second = await ended(store, scope=ADAS_OTHER_SESSION, ending=ENDINGS["error"])
    await ended(store, scope=BOB)
    await running(store)
    assert first.finished_at is not None
    assert second.finished_at is not None
    found = await store.ended_since(0, EVERY_SESSION_OF_ADA, limit=10)
    assert [task.id for task in found] == [second.id, first.id]
    assert [(task.result, task.summary) for task in found] == [(None, None), (None, "42 passed")]
    assert [task.id for task in await store.ended_since(0, ADA, limit=10)] == [first.id]
    assert len(await store.ended_since(0, EVERY_SESSION_OF_ADA, limit=1)) == 1
    later = max(first.finished_at, second.finished_at) + 1
    assert await store.ended_since(later, EVERY_SESSION_OF_ADA, limit=10) == []


async def test_sessions_with_what_their_tasks_are(store: Store) -> None:
    agent = await queued(store, "bg_agent", kind=Kind.AGENT)
    await ended(store)
    await ended(store, ending=ENDINGS["error"])
    newest = await running(store, scope=ADAS_OTHER_SESSION)
    await queued(store, scope=Scope("ada", agent.id))
    await queued(store, scope=BOB)
    found = {each.name: each for each in await store.sessions(EVERY_SESSION_OF_ADA, recent=100)}
    assert set(found) == {"chat", "work", agent.id}
    assert found["chat"].counts == {State.QUEUED: 1, State.SUCCEEDED: 1, State.FAILED: 1}
    assert (found["chat"].parent, found[agent.id].parent) == (None, agent.id)
    assert found["work"].last_created_at == newest.created_at
    assert [each.name for each in await store.sessions(ADA, recent=100)] == ["chat"]
    # Of the past only the newest, of the present everything.
    recent = {
        each.name: each.counts for each in await store.sessions(EVERY_SESSION_OF_ADA, recent=1)
    }
    assert recent["chat"] == {State.QUEUED: 1}
    assert recent["work"] == {State.RUNNING: 1}


async def test_the_newest_signals(store: Store) -> None:
    tasks = [await ended(store) for _ in range(3)]
    elsewhere = await ended(store, scope=ADAS_OTHER_SESSION)
    await ended(store, scope=BOB)
    found = await store.newest_signals(EVERY_SESSION_OF_ADA, limit=10)
    assert [each.task for each in found] == [each.id for each in [elsewhere, *reversed(tasks)]]
    within = await store.newest_signals(ADA, limit=2)
    assert [each.task for each in within] == [tasks[2].id, tasks[1].id]
    rest = await store.newest_signals(ADA, limit=2, before=within[-1].seq)
    assert [each.task for each in rest] == [tasks[0].id]
    await store.acknowledge([found[0].key], EVERY_SESSION_OF_ADA)
    told = await store.newest_signals(
        EVERY_SESSION_OF_ADA, states=[SignalState.DELIVERED], channel=INBOX, limit=10
    )
    assert [each.key for each in told] == [found[0].key]
    assert await store.newest_signals(EVERY_SESSION_OF_ADA, channel="none", limit=10) == []
