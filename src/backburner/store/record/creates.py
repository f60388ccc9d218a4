"""The making of tasks, many at once: each with its first event, in one transaction."""

import json
from collections.abc import Sequence
from typing import Any

from backburner.model.ending import Ending
from backburner.model.errors import Conflict, LimitReached
from backburner.model.events import EventKind
from backburner.model.order import no_such_queue
from backburner.model.states import Kind
from backburner.model.task import NewTask, Task
from backburner.model.values import value
from backburner.store.record.ends import End, end_tasks
from backburner.store.record.rows import from_database, to_json, to_task
from backburner.store.record.together import Together
from backburner.store.record.transaction import Statements


@value
class Create:
    """A task that is to be written, as `Store.create` is told."""

    task: NewTask
    spec: str
    limit: int
    ending: Ending | None
    detail: str | None

    @property
    def sort(self) -> tuple[str, str, Kind, bool]:
        """Of what a session may have so many: those that wait in queues, or all others."""
        task = self.task
        return task.owner, task.session, task.kind, task.order.queue is not None

    def row(self, now: int) -> Sequence[Any]:
        """In the order of `tasks_insert`."""
        task, order = self.task, self.task.order
        return (
            task.id, task.owner, task.session, task.kind, task.title, self.spec, now,
            task.max_runtime_s, task.parent, task.schedule, task.hand_over, order.queue,
            to_json(order.after) if order.after else None, order.after_failure, order.retries,
            order.priority, self.detail,
        )  # fmt: skip


def create_task(run: Statements, create: Create) -> Task:
    """Write one."""
    (answer,) = create_tasks(run, [create])
    if isinstance(answer, Exception):
        raise answer
    return answer


def create_tasks(run: Statements, creates: Sequence[Create]) -> list[Task | Exception]:
    """Write many, each where its session has room for it. No id twice."""
    sorts = list(dict.fromkeys(create.sort for create in creates))
    ids = [create.task.id for create in creates]
    ((taken, counts, queues),) = run.many("tasks_before_create", ids=ids, sorts=sorts)
    there, lines = frozenset(from_database(taken)), from_database(queues)
    active = dict(zip(sorts, from_database(counts), strict=True))
    answers: dict[str, Task | Exception] = {}
    of_owner: dict[str, list[Create]] = {}
    for create in creates:
        task = create.task
        if task.id in there:
            answers[task.id] = _there_already(run, create)
        elif task.order.queue is not None and task.order.queue not in lines:
            answers[task.id] = no_such_queue(task.order.queue, lines)
        elif create.ending is None and active[create.sort] >= create.limit:
            answers[task.id] = _above_limit(create, active[create.sort])
        else:
            active[create.sort] += create.ending is None
            of_owner.setdefault(task.owner, []).append(create)
    for owner, theirs in of_owner.items():
        with run.acting_for(owner):
            answers |= insert_tasks(run, theirs)
    # One that was not written has the id of a stranger's, whom an owner's own writes do not see.
    return [answers.get(create.task.id) or id_is_taken(create.task) for create in creates]


CREATES = Together(create_tasks, subject=lambda create: create.task.id, turn=5)


def insert_tasks(run: Statements, creates: Sequence[Create]) -> dict[str, Task]:
    """Write tasks that have not started, or are over from the start; not those whose ids are taken.

    Limits are the affair of the caller.
    """
    if not creates:
        return {}
    now = run.now()
    rows = run.many("tasks_insert", rows=[create.row(now) for create in creates])
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


def _there_already(run: Statements, create: Create) -> Task | Exception:
    existing = run.task("task_get", id=create.task.id)
    assert existing is not None
    try:
        return same_or_conflict(existing, create.task, create.spec)
    except Conflict as error:
        return error


def _above_limit(create: Create, others: int) -> LimitReached:
    task, limit = create.task, create.limit
    in_queue = task.order.queue is not None
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
