"""The beginnings of queued tasks, many at once: each with its event, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from backburner.model import clock
from backburner.model.events import EventKind
from backburner.model.task import Place, Task
from backburner.model.values import value
from backburner.store.record.rows import to_json, to_task
from backburner.store.record.together import Together
from backburner.store.record.transaction import Statements


@value
class Claim:
    """An attempt that is the caller's to carry out, as `Store.claim` is told."""

    task: str
    attempt: int
    place: Place
    node: str | None = None
    """The one that must have taken it, where there are many."""
    where: Mapping[str, str] = field(default_factory=dict[str, str])
    """What its event says of that."""


@value
class Claimed:
    """What has begun."""

    task: Task
    events: int
    """How many it has now."""


def claim_tasks(run: Statements, claims: Sequence[Claim]) -> list[Claimed | None]:
    """Each queued → running, while its queue has a place. No task twice."""
    now = clock.now()
    rows = run.many("tasks_claim", now=now, wanted=[_row(claim) for claim in claims])
    claimed: dict[str, Claimed] = {}
    events: list[Sequence[Any]] = []
    wanted = {claim.task: claim for claim in claims}
    for count, *row in rows:
        task = to_task(tuple(row))
        claimed[task.id] = Claimed(task, count)
        told: dict[str, Any] = {"attempt": task.attempt, **wanted[task.id].where}
        events.append((task.seq, count, now, EventKind.STARTED, to_json(told)))
        run.happens(task.id, EventKind.STARTED)
    if events:
        run.many("events_insert", rows=events)
    return [claimed.get(claim.task) for claim in claims]


CLAIMS = Together(claim_tasks, subject=lambda claim: claim.task, turn=2)


def _row(claim: Claim) -> Sequence[Any]:
    """In the order of `tasks_claim`."""
    place = claim.place
    return (
        claim.task, claim.attempt, place.boot_id, place.started_boot, place.pid, place.cgroup,
        place.memory_cgroup, place.worker, claim.node,
    )  # fmt: skip
