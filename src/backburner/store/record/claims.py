"""The beginnings of queued tasks, many at once: each with its event, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from backburner.model.events import EventKind
from backburner.model.task import Place, Task
from backburner.model.values import value
from backburner.store.record.rows import to_json, to_task
from backburner.store.record.together import Together
from backburner.store.record.transaction import Row, Statements


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
    unsure: bool = False
    """It may be on record already: somebody was asked before, and nobody heard the answer."""

    @property
    def told(self) -> str:
        """What its event says."""
        return to_json({"attempt": self.attempt, **self.where})

    @property
    def row(self) -> Sequence[Any]:
        """In the order of `tasks_claim`."""
        place = self.place
        return (
            self.task, self.attempt, place.boot_id, place.started_boot, place.pid, place.cgroup,
            place.memory_cgroup, place.worker, self.node, self.told,
        )  # fmt: skip


@value
class Claimed:
    """What has begun."""

    task: Task
    events: int
    """How many it has now."""


def claim_tasks(run: Statements, claims: Sequence[Claim]) -> list[Claimed | None]:
    """Each queued → running, while its queue has a place. No task twice."""
    now = run.now()
    rows = run.many("tasks_claim", now=now, wanted=[claim.row for claim in claims])
    claimed = claimed_by(rows)
    told = {claim.task: claim.told for claim in claims}
    events: list[Sequence[Any]] = []
    for task_id, each in claimed.items():
        events.append((each.task.seq, each.events, now, EventKind.STARTED, told[task_id]))
        run.happens(task_id, EventKind.STARTED)
    if events:
        run.many("events_insert", rows=events)
    return [claimed.get(claim.task) for claim in claims]


def claimed_by(rows: Sequence[Row]) -> dict[str, Claimed]:
    """What has begun, by its id, of the rows of `tasks_claim`."""
    tasks = ((to_task(tuple(row)), count) for count, *row in rows)
    return {task.id: Claimed(task, count) for task, count in tasks}


CLAIMS = Together(claim_tasks, subject=lambda claim: claim.task, turn=2)
