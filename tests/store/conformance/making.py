"""Tasks for the tests of the stores, in the state that a test starts from."""

import itertools
from typing import Any

from backburner.model.ending import Ending
from backburner.model.order import ANY_TIME, Order
from backburner.model.states import ErrorKind, Kind
from backburner.model.task import NewTask, Place, Task
from backburner.store.protocol import Scope, Store

ADA = Scope("ada", "chat")
ADAS_OTHER_SESSION = Scope("ada", "work")
BOB = Scope("bob", "chat")
"""Another owner, with a session of the same name."""

EVERY_SESSION_OF_ADA = Scope("ada")
STRANGERS = (ADAS_OTHER_SESSION, BOB, Scope("bob"), Scope("", ""), Scope("ADA", "chat"))
"""Everyone who must see nothing of Ada's chat."""

PLACE = Place("boot-1", 1_000_000, 4711, "/sys/fs/cgroup/x")
PLENTY = 1_000_000

ENDINGS = {
    "succeeded": Ending.exited(0),
    "with a result": Ending.succeeded(summary="42 passed", result={"passed": 42}),
    "exit": Ending.exited(3),
    "error": Ending.failed(ErrorKind.ERROR, "ValueError: no", result=[1, None]),
    "timeout": Ending.failed(ErrorKind.TIMEOUT, "past its time"),
    "killed": Ending.failed(ErrorKind.KILLED, "SIGKILL"),
    "orphaned": Ending.failed(ErrorKind.ORPHANED, "reboot"),
    "spawn": Ending.failed(ErrorKind.SPAWN, "no such folder"),
    "canceled": Ending.canceled(),
}

_numbers = itertools.count(1)


def new_task(
    id: str | None = None,
    *,
    scope: Scope = ADA,
    kind: Kind = Kind.SHELL,
    title: str = "tests",
    spec: dict[str, Any] | None = None,
    order: Order = ANY_TIME,
) -> NewTask:
    """What a caller wants written."""
    return NewTask(
        id=id or f"bg_{next(_numbers):016d}",
        owner=scope.owner,
        session=scope.session or "chat",
        kind=kind,
        title=title,
        spec={"command": "pytest"} if spec is None else spec,
        max_runtime_s=60.0,
        # What keepers start has one; tools and agents here are those of applications.
        hand_over="0+4096" if kind in (Kind.SHELL, Kind.PYTHON) else None,
        order=order,
    )


async def queued(
    store: Store, id: str | None = None, *, scope: Scope = ADA, kind: Kind = Kind.SHELL
) -> Task:
    """A task that waits for a worker."""
    return await store.create(new_task(id, scope=scope, kind=kind), limit=PLENTY)


async def running(
    store: Store, id: str | None = None, *, scope: Scope = ADA, kind: Kind = Kind.SHELL
) -> Task:
    """A task that is being carried out."""
    task = await queued(store, id, scope=scope, kind=kind)
    claimed = await store.claim(task.id, task.attempt, PLACE)
    assert claimed is not None
    return claimed


async def ended(
    store: Store,
    id: str | None = None,
    *,
    scope: Scope = ADA,
    ending: Ending = ENDINGS["succeeded"],
    leftovers: int = 0,
) -> Task:
    """A task that has ended, and whose session is to be told."""
    task = await running(store, id, scope=scope)
    done = await store.finish(task.id, task.attempt, ending, leftovers=leftovers)
    assert done is not None
    return done


async def get(store: Store, id: str) -> Task:
    """A task that must be there."""
    task = await store.get(id)
    assert task is not None
    return task
