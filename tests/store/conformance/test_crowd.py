"""X1, X2, E3, E11, E12: 32 processes on one record at once lose nothing and double nothing."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from typing import Any

import pytest

from backburner.model.events import Event, EventKind
from backburner.model.signals import SignalState, end_key
from backburner.model.states import State
from backburner.model.task import Task
from backburner.store.protocol import Scope, Store
from tests.conftest import REPOSITORY
from tests.store.conformance.conftest import OpenAnother
from tests.store.conformance.crowd import OWNER, TIGHT_LIMIT
from tests.store.conformance.engines import ENGINES
from tests.store.conformance.making import ENDINGS, PLACE

PROCESSES = 32
ROUNDS = 20
LEAST = 0.5
"""Of these. With fewer, too few of them hear of what others have done."""


class Journals:
    """What all processes were told, by the kind of entry."""

    def __init__(self, entries: list[list[Any]]) -> None:
        self._entries = entries

    def __getitem__(self, kind: str) -> list[list[Any]]:
        return [entry[1:] for entry in self._entries if entry[0] == kind]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_x1_x2_thirty_two_processes_lose_nothing_and_double_nothing(
    engine_name: str, address: str, open_another: OpenAnother
) -> None:
    journals = Journals(await run_crowd(engine_name, address))
    store = await open_another()
    await carry_out_the_rest(store)
    told_here = await hear_the_rest(store)

    tasks = {task.id: task for task in await store.newest(OWNER, limit=1_000_000)}
    events: dict[str, list[Event]] = {task_id: await store.events(task_id) for task_id in tasks}
    check_starts(journals, tasks)
    check_lives(journals, tasks, events)
    await check_tellings(journals, store, tasks, told_here)
    check_limit(tasks, [event for each in events.values() for event in each])

    # The crowd did meet: otherwise this test proves nothing.
    assert len(journals["refused"]) > 0
    assert len(journals["requeued"]) > 0
    assert len(journals["told"]) > PROCESSES
    assert len({entry[0] for entry in journals["stopped"]}) > PROCESSES


async def run_crowd(engine: str, address: str) -> list[list[Any]]:
    """All processes at once; what they wrote."""
    rounds = round(ROUNDS * max(ENGINES[engine].share, LEAST))
    module = "tests.store.conformance.crowd"
    crowd: list[Process] = []
    try:
        for number in range(PROCESSES):
            command = [sys.executable, "-m", module, engine, address, str(number), str(rounds)]
            crowd.append(
                await asyncio.create_subprocess_exec(
                    *command, cwd=REPOSITORY, stdin=PIPE, stdout=PIPE
                )
            )
        for member in crowd:
            assert member.stdout is not None
            assert await member.stdout.readline() == b"ready\n"
        outputs = await asyncio.gather(*(member.communicate(b"go\n") for member in crowd))
    finally:
        for member in crowd:
            if member.returncode is None:
                member.kill()
                await member.wait()
    assert [member.returncode for member in crowd] == [0] * PROCESSES
    return [json.loads(line) for output, _ in outputs for line in output.splitlines()]


async def carry_out_the_rest(store: Store) -> None:
    """What nobody got to."""
    while waiting := await store.waiting_for_keeper():
        for task in waiting:
            assert task.state is State.QUEUED, "a claimed task was left alone"
            assert await store.claim(task.id, task.attempt, PLACE) is not None
            assert await store.finish(task.id, task.attempt, ENDINGS["succeeded"]) is not None
    assert await store.active() == []


async def hear_the_rest(store: Store) -> list[str]:
    keys: list[str] = []
    while signals := await store.claim_signals(OWNER, consumer="last", limit=500, lease_s=60):
        keys += [signal.key for signal in signals]
    assert await store.acknowledge(keys, OWNER) == len(keys)
    return keys


def check_starts(journals: Journals, tasks: dict[str, Task]) -> None:
    """E12: every start that returned is there, once, and the same id is the same task."""
    created = {(task_id, seq) for task_id, seq in journals["created"]}
    assert created == {(task.id, task.seq) for task in tasks.values()}
    shared = Counter(task_id for task_id, _ in journals["created"] if task_id.startswith("shared"))
    assert set(shared.values()) == {PROCESSES}
    refused = {task_id for (task_id,) in journals["refused"]}
    assert refused.isdisjoint(tasks)


def check_lives(journals: Journals, tasks: dict[str, Task], events: dict[str, list[Event]]) -> None:
    """E10, E11: one worker for each attempt, one end, a history without gaps."""
    claims = Counter((task_id, attempt) for task_id, attempt in journals["claimed"])
    assert set(claims.values()) == {1}, "two processes carried out the same attempt"
    for task_id, attempt, won, late_was_dropped in journals["requeued"]:
        assert won, (task_id, attempt)
        assert late_was_dropped, (task_id, attempt)
    ends: dict[str, str] = {}
    for task_id, _, states in journals["ended"]:
        assert len(states) == 1, f"{task_id} has {len(states)} ends"
        assert task_id not in ends, f"{task_id} ended twice"
        ends[task_id] = states[0]
    for task_id, task in tasks.items():
        history = events[task_id]
        assert [event.number for event in history] == list(range(1, len(history) + 1))
        kinds = Counter(event.kind for event in history)
        assert (kinds[EventKind.CREATED], kinds[EventKind.FINISHED]) == (1, 1)
        assert history[-1].kind is EventKind.FINISHED
        started = [e.data["attempt"] for e in history if e.kind is EventKind.STARTED]
        assert started == list(range(1, len(started) + 1))
        assert all((task_id, attempt) in claims for attempt in started[:-1])
        if task_id in ends:
            assert task.state == ends[task_id]
        elif (task_id, task.attempt) in claims:
            pytest.fail(f"{task_id} was claimed and never ended")
        else:  # stopped while it was queued, or carried out after the crowd had left
            assert task.state in (State.CANCELED, State.SUCCEEDED)
    asked = {task_id for task_id, state in journals["stopped"] if state is not None}
    assert asked <= set(tasks)


async def check_tellings(
    journals: Journals, store: Store, tasks: dict[str, Task], told_here: list[str]
) -> None:
    """X1: one signal for each end, told once, and never in two hands at a time."""
    signals = await store.signals(OWNER, limit=1_000_000)
    assert Counter(signal.key for signal in signals) == Counter(
        end_key(task_id) for task_id in tasks
    )
    assert {signal.state for signal in signals} == {SignalState.DELIVERED}
    told = Counter([*(key for (key,) in journals["told"]), *told_here])
    assert told == Counter(end_key(task_id) for task_id in tasks)
    assert journals["taken away"] == [], "someone else had what a consumer held"
    hands = Counter((key, tries) for key, tries in journals["heard"])
    hands.subtract((key, tries) for key, tries in journals["gave back"])
    assert set(hands.values()) <= {0, 1}, "two consumers were given the same signal"


def check_limit(tasks: dict[str, Task], events: list[Event]) -> None:
    """E3: replayed in the order of the record, the tight session never had one too many."""
    active = 0
    fullest = 0
    tight = {
        task_id
        for task_id, task in tasks.items()
        if Scope(task.owner, task.session).session == "tight"
    }
    for event in sorted(events, key=lambda event: event.seq):
        if event.task in tight:
            active += {EventKind.CREATED: 1, EventKind.FINISHED: -1}.get(event.kind, 0)
            fullest = max(fullest, active)
    assert active == 0
    assert fullest == TIGHT_LIMIT
