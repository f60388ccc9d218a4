"""Reading: by id, by prefix, newest first; what belongs to others does not exist (promise 2)."""

from dataclasses import replace

import pytest

from backburner.model.events import EventKind
from backburner.model.states import ACTIVE, TERMINAL, Kind, State
from backburner.store.protocol import Facts, Scope, Store
from tests.store.conformance.making import (
    ADA,
    ADAS_OTHER_SESSION,
    BOB,
    ENDINGS,
    EVERY_SESSION_OF_ADA,
    PLACE,
    STRANGERS,
    ended,
    new_task,
    queued,
    running,
)


async def test_an_empty_record_has_nothing(store: Store) -> None:
    assert await store.get("bg_1") is None
    assert await store.find("bg_", ADA, 10) == []
    assert await store.newest(ADA, limit=10) == []
    assert await store.active() == []
    assert await store.outlived_agents() == []
    assert await store.waiting_for_keeper() == []
    assert await store.events("bg_1") == []
    assert await store.events_since(0) == []
    assert await store.last_event() == 0
    assert await store.signals(ADA) == []
    assert await store.claim_signals(ADA, consumer="c", limit=10, lease_s=60) == []
    assert await store.prunable(2**62, None, 10) == []
    assert await store.forget(["bg_1"]) == 0
    assert await store.forget([]) == 0


# Isolation


@pytest.mark.parametrize("scope", STRANGERS, ids=str)
async def test_promise_2_to_everyone_else_a_task_does_not_exist(store: Store, scope: Scope) -> None:
    lingering = await ended(store, "bg_ended", leftovers=1)
    for task in (await queued(store, "bg_q"), await running(store, "bg_r"), lingering):
        assert await store.get(task.id, scope) is None
        assert await store.find(task.id, scope, 10) == []
    assert await store.find("bg_", scope, 10) == []
    assert await store.find("", scope, 10) == []
    assert await store.newest(scope, limit=10) == []
    assert await store.signals(scope) == []
    assert await store.signals(scope, task=lingering.id) == []
    assert await store.claim_signals(scope, consumer="c", limit=10, lease_s=60) == []
    assert await store.acknowledge([f"{lingering.id}:end"], scope) == 0
    assert await store.prunable(2**62, scope, 10) == []
    assert len(await store.claim_signals(ADA, consumer="c", limit=10, lease_s=60)) == 1


async def test_promise_2_each_session_sees_its_own_and_the_owner_all_of_theirs(
    store: Store,
) -> None:
    mine = await ended(store, "bg_1", scope=ADA)
    other = await ended(store, "bg_2", scope=ADAS_OTHER_SESSION)
    bobs = await ended(store, "bg_3", scope=BOB)
    for scope in (ADA, ADAS_OTHER_SESSION, BOB):
        await queued(store, f"w-{scope.owner}-{scope.session}", scope=scope)
    for scope, expected in (
        (ADA, [mine]),
        (ADAS_OTHER_SESSION, [other]),
        (BOB, [bobs]),
        (EVERY_SESSION_OF_ADA, [other, mine]),
        (Scope("bob"), [bobs]),
    ):
        assert await store.newest(scope, limit=10, states=TERMINAL) == expected
        assert len(await store.newest(scope, limit=10)) == 2 * len(expected)
        waits = await store.newest(scope, limit=10, states=ACTIVE)
        assert [(task.owner, task.session) for task in waits] == [
            (task.owner, task.session) for task in expected
        ]
        assert await store.find("bg_", scope, 10) == expected
        assert {signal.task for signal in await store.signals(scope)} == {t.id for t in expected}
        ids = {task.id for task in await store.prunable(2**62, scope, 10)}
        assert ids == {task.id for task in expected}
        assert [task.id for task in (mine, other, bobs) if await store.get(task.id, scope)] == [
            task.id for task in (mine, other, bobs) if task in expected
        ]


# By prefix


async def test_a_prefix_finds_every_task_that_begins_with_it(store: Store) -> None:
    for task_id in ("bg_abc", "bg_abd", "bg_ab", "bg_b", "BG_AB", "bg-ab", "zz", "bgxab"):
        await queued(store, task_id)

    async def found(prefix: str, limit: int = 10) -> list[str]:
        return [task.id for task in await store.find(prefix, ADA, limit)]

    assert await found("bg_ab") == ["bg_ab", "bg_abd", "bg_abc"]
    assert await found("bg_abc") == ["bg_abc"]
    assert await found("bg_abcd") == []
    assert await found("BG") == ["BG_AB"]
    assert await found("z") == ["zz"]
    assert await found("bg_ab", limit=2) == ["bg_ab", "bg_abd"]
    assert len(await found("")) == 8


@pytest.mark.parametrize("wild", ["%", "_", "b%", "bg_%", "*", "b*", "?", "bg?", "[a-z]", "'", '"'])
async def test_a_prefix_has_no_wildcards(store: Store, wild: str) -> None:
    await queued(store, "bg_1")
    await queued(store, "bgx2")
    assert await store.find(wild, ADA, 10) == []


async def test_a_prefix_with_an_underscore_means_an_underscore(store: Store) -> None:
    await queued(store, "bg_1")
    await queued(store, "bgx1")
    assert [task.id for task in await store.find("bg_", ADA, 10)] == ["bg_1"]


# Newest first


async def test_c1_tasks_come_newest_first_a_page_at_a_time(store: Store) -> None:
    tasks = [await queued(store) for _ in range(7)]
    await queued(store, scope=BOB)
    newest = [task.id for task in reversed(tasks)]
    assert [task.id for task in await store.newest(ADA, limit=100)] == newest
    for scope in (ADA, EVERY_SESSION_OF_ADA):
        pages: list[list[str]] = []
        before: int | None = None
        while page := await store.newest(scope, limit=3, before=before):
            pages.append([task.id for task in page])
            before = page[-1].seq
        assert pages == [newest[:3], newest[3:6], newest[6:]]


async def test_c1_new_tasks_do_not_shift_the_pages(store: Store) -> None:
    tasks = [await queued(store) for _ in range(4)]
    page = await store.newest(ADA, limit=2)
    await queued(store)
    rest = await store.newest(ADA, limit=10, before=page[-1].seq)
    assert [task.id for task in [*page, *rest]] == [task.id for task in reversed(tasks)]


async def test_c1_tasks_are_filtered_by_state(store: Store) -> None:
    by_state = {
        State.QUEUED: await queued(store),
        State.RUNNING: await running(store),
        State.SUCCEEDED: await ended(store),
        State.FAILED: await ended(store, ending=ENDINGS["exit"]),
        State.CANCELED: await ended(store, ending=ENDINGS["canceled"]),
    }
    for scope in (ADA, EVERY_SESSION_OF_ADA):
        for state, task in by_state.items():
            assert await store.newest(scope, limit=10, states=[state]) == [task]
        assert await store.newest(scope, limit=10, states=[State.INPUT_REQUIRED]) == []
        active = await store.newest(scope, limit=10, states=ACTIVE)
        assert {task.state for task in active} == {State.QUEUED, State.RUNNING}
        over = await store.newest(scope, limit=10, states=TERMINAL)
        assert [task.state for task in over] == [State.CANCELED, State.FAILED, State.SUCCEEDED]
        assert len(await store.newest(scope, limit=10)) == 5
        assert await store.newest(scope, limit=1, states=TERMINAL) == over[:1]
        assert await store.newest(scope, limit=9, states=TERMINAL, before=over[0].seq) == over[1:]


# For workers: all owners


async def test_active_tasks_are_those_that_have_not_ended_or_left_something(store: Store) -> None:
    waiting = await queued(store, scope=BOB)
    going = await running(store)
    tool = await running(store, kind=Kind.TOOL)
    lingering = await ended(store, leftovers=1)
    await ended(store)
    assert await store.active() == [waiting, going, tool, lingering], "oldest first"
    assert await store.active(Kind.SHELL) == [waiting, going, lingering]
    assert await store.active(Kind.TOOL) == [tool]
    assert await store.active(Kind.AGENT) == []
    await store.note(lingering.id, 1, EventKind.LEFTOVERS, Facts(leftovers=0))
    assert await store.active(Kind.SHELL) == [waiting, going]


async def test_a_worker_sees_what_is_to_be_started_and_stopped(store: Store) -> None:
    waiting = await queued(store, scope=BOB)
    going = await running(store)
    lingering = await ended(store, leftovers=1)
    await queued(store, kind=Kind.TOOL)
    await ended(store)
    assert await store.waiting_for_keeper() == [waiting]
    stopping = await store.request_stop(going.id, ADA, 5.0)
    ending = await store.request_stop(lingering.id, ADA, 5.0)
    assert await store.waiting_for_keeper() == [stopping, ending, waiting]
    await store.finish(going.id, 1, ENDINGS["canceled"])
    await store.claim(waiting.id, 1, PLACE)
    assert await store.waiting_for_keeper() == [ending]


async def test_a_keeper_looks_after_processes_of_every_kind_and_after_nothing_else(
    store: Store,
) -> None:
    shell, python = await queued(store), await running(store, kind=Kind.PYTHON)
    await queued(store, kind=Kind.TOOL)  # an application's
    await running(store, kind=Kind.AGENT)
    tool = await store.create(replace(new_task(kind=Kind.TOOL), hand_over="1+1"), limit=9)
    assert await store.kept() == [shell, python, tool]
    assert await store.waiting_for_keeper() == [shell, tool]
    await store.request_stop(python.id, ADA, 5.0)
    assert [task.id for task in await store.waiting_for_keeper()] == [python.id, shell.id, tool.id]


async def test_a_requeued_task_waits_for_a_worker_again(store: Store) -> None:
    task = await running(store)
    assert await store.waiting_for_keeper() == []
    again = await store.requeue(task.id, 1, "the worker died")
    assert await store.waiting_for_keeper() == [again]


# Agents


async def test_d8_agents_that_have_ended_before_what_they_had_started(store: Store) -> None:
    """Whoever else's session has such a name; an agent that runs sees to its own."""
    agents: list[str] = []
    for scope in (ADA, BOB):
        for state in ("ended", "running", "childless"):
            agent = await running(store, scope=scope, kind=Kind.AGENT)
            own = Scope(agent.owner, agent.id)
            await ended(store, scope=own)
            if state != "childless":
                await queued(store, scope=own)
                await queued(store, scope=Scope("stranger", agent.id))
            if state != "running":
                assert await store.finish(agent.id, 1, ENDINGS["exit"]) is not None
            if state == "ended":
                agents.append(agent.id)
    shell = await ended(store)
    await queued(store, scope=Scope(shell.owner, shell.id))
    assert [agent.id for agent in await store.outlived_agents()] == agents
