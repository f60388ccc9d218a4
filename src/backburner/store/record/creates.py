"""The making of tasks, many at once: each with its first event, in one transaction."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.errors import Conflict, LimitReached, NotFound
from backburner.model.events import EventKind
from backburner.model.order import known_queues
from backburner.model.states import Kind
from backburner.model.task import NewTask, Task
from backburner.model.values import value
from backburner.store.record.ends import End, end_tasks
from backburner.store.record.rows import to_json, to_task
from backburner.store.record.together import Together
from backburner.store.record.transaction import Statements

Sort = tuple[str, str, Kind, bool]


@value
class Create:
    """A task that is to be written, as `Store.create` is told."""

    task: NewTask
    spec: str
    limit: int
    ending: Ending | None
    detail: str | None

    @property
    def sort(self) -> Sort:
        """Of what a session may have so many: those that wait in queues, or all others."""
        task = self.task
        return task.owner, task.session, task.kind, task.order.queue is not None


def create_task(run: Statements, create: Create) -> Task:
    """Write one."""
    (answer,) = create_tasks(run, [create])
    if isinstance(answer, Exception):
        raise answer
    return answer


def create_tasks(run: Statements, creates: Sequence[Create]) -> list[Task | Exception]:
    """Write many, each where its session has room for it. No id twice."""
    of_owner: dict[str, list[Create]] = {}
    for create in creates:
        of_owner.setdefault(create.task.owner, []).append(create)
    created: dict[str, Task] = {}
    for owner, theirs in of_owner.items():
        with run.acting_for(owner):
            created |= insert_tasks(run, theirs)
    return [created.get(create.task.id) or _alone(run, create) for create in creates]


CREATES = Together(create_tasks, subject=lambda create: create.task.id, turn=5)


def _alone(run: Statements, create: Create) -> Task | Exception:
    """One that was not written with others: they may have been given room that they did not need,

    because their ids were taken.
    """
    task = create.task
    if (existing := run.task("task_get", id=task.id)) is not None:
        try:
            return same_or_conflict(existing, task, create.spec)
        except Conflict as error:
            return error
    with run.acting_for(task.owner):
        if created := insert_tasks(run, [create]):
            return created[task.id]
    if (queue := task.order.queue) is not None:
        lines = [name for name, *_ in run.rows("queues")]
        if queue not in lines:
            return NotFound(f"there is no queue {queue!r}", remedy=known_queues(lines))
    return _above_limit(run, create)


def insert_tasks(
    run: Statements, creates: Sequence[Create], *, limited: bool = True
) -> dict[str, Task]:
    """Write tasks that have not started, or are over from the start: those whose ids are free, and

    whose sessions have room for them where that is ``limited``.
    """
    if not creates:
        return {}
    now = clock.now()
    rows = run.many("tasks_insert", **insertion(creates, now, limited=limited))
    created = {task.id: task for task in map(to_task, rows)}
    events: list[Sequence[Any]] = []
    for task in created.values():
        events.append((task.seq, 1, now, EventKind.CREATED, "{}"))
        run.happens(task.id, EventKind.CREATED)
    if events:
        run.many("events_insert", rows=events)
    ends = [
        End(create.task.id, created[create.task.id].attempt, create.ending)
        for create in creates
        if create.ending is not None and create.task.id in created
    ]
    for end, ended in zip(ends, end_tasks(run, ends) if ends else (), strict=True):
        if ended is None:
            raise ValueError(f"a task that never ran cannot end as {end.ending.state}")
        created[end.task] = ended
    return created


def insertion(creates: Sequence[Create], now: int, *, limited: bool) -> dict[str, list[Any]]:
    """What `tasks_insert` is told."""
    places: dict[Sort, int] = {}
    before: Counter[Sort] = Counter()
    rows: list[Sequence[Any]] = []
    for create in creates:
        place = places.setdefault(create.sort, len(places) + 1)
        most: int | None = None
        if limited and create.ending is None:
            before[create.sort] += 1
            most = create.limit - before[create.sort]
        rows.append((*_row(create, now), place, most))
    return {"rows": rows, "sorts": list(places)}


def _row(create: Create, now: int) -> Sequence[Any]:
    """In the order of `tasks_insert`, but for its sort and what that may have."""
    task, order = create.task, create.task.order
    return (
        task.id, task.owner, task.session, task.kind, task.title, create.spec, now,
        task.max_runtime_s, task.parent, task.schedule, task.hand_over, order.queue,
        to_json(order.after) if order.after else None, order.after_failure, order.retries,
        order.priority, create.detail,
    )  # fmt: skip


def _above_limit(run: Statements, create: Create) -> LimitReached:
    task, limit = create.task, create.limit
    in_queue = task.order.queue is not None
    ((others,),) = run.rows(
        "task_count_active",
        owner=task.owner,
        session=task.session,
        kind=task.kind,
        in_queue=in_queue,
    )
    what = "tasks waiting in queues" if in_queue else f"active {task.kind} tasks"
    return LimitReached(
        f"session {task.session!r} has {others} {what}, and {limit} is the limit",
        remedy="wait for one to end, or stop one",
    )


def same_or_conflict(existing: Task, wanted: NewTask, spec: str) -> Task:
    """The task that is there, where it is what is wanted; Conflict where it is not."""
    same_place = (existing.owner, existing.session) == (wanted.owner, wanted.session)
    # As JSON, which has no tuples and only texts for keys.
    if same_place and (existing.kind, existing.spec) == (wanted.kind, json.loads(spec)):
        return existing
    raise id_is_taken(wanted)


def id_is_taken(wanted: NewTask) -> Conflict:
    """By another task, perhaps of somebody else: not even that is said."""
    return Conflict(
        f"the id {wanted.id!r} cannot be used for this task",
        remedy="choose another id, or leave it out",
    )
