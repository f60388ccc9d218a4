"""Schedules for the tests, and turns of them."""

from dataclasses import replace
from typing import Any

from backburner.model.schedule import NewSchedule, Schedule, Start, Turn
from backburner.model.states import Kind
from backburner.model.task import NewTask
from backburner.store.protocol import Scope, Store
from tests.store.conformance.making import ADA

PLENTY = 1000
FIRST = 1_000
"""Instants that nobody waits for."""


def new_schedule(id: str = "sc_1", scope: Scope = ADA, **changes: Any) -> NewSchedule:
    assert scope.session is not None
    return replace(
        NewSchedule(
            id=id,
            owner=scope.owner,
            session=scope.session,
            kind=Kind.SHELL,
            title="nightly",
            spec={"command": "true"},
            zone="UTC",
            next_at=FIRST,
            due_at=FIRST,
            cron="* * * * *",
            task_limit=PLENTY,
        ),
        **changes,
    )


async def add(store: Store, id: str = "sc_1", scope: Scope = ADA, **changes: Any) -> Schedule:
    schedule, fresh = await store.add_schedule(new_schedule(id, scope, **changes), limit=PLENTY)
    assert fresh
    return schedule


def start(nominal: int, schedule: str = "sc_1", **changes: Any) -> Start:
    task = NewTask(
        id=f"bg_{schedule}_{nominal}",
        owner="ada",
        session="chat",
        kind=Kind.SHELL,
        title="nightly",
        spec={"command": "true"},
        schedule=schedule,
        hand_over="0+4096",
    )
    return Start(nominal, task, **changes)


def turn(*nominal: int, next_at: int | None, **changes: Any) -> Turn:
    return Turn(tuple(map(start, nominal)), next_at, next_at, **changes)


async def get(store: Store, id: str = "sc_1") -> Schedule:
    found = await store.schedule(id)
    assert found is not None
    return found
