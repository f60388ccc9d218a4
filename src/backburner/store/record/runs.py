"""The changes of runs: tasks that an application carries out in itself, and those applications."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from backburner.model.clock import Instant
from backburner.model.errors import Conflict, LimitReached
from backburner.model.events import EventKind
from backburner.model.states import Kind, State
from backburner.model.task import NewTask, Place, Task
from backburner.model.values import value
from backburner.model.worker import Worker
from backburner.store.record.changes import Changes
from backburner.store.record.creates import same_or_conflict
from backburner.store.record.rows import from_database, to_json
from backburner.store.record.together import Together
from backburner.store.record.transaction import Statements

if TYPE_CHECKING:
    from asyncio import Future


class RunChanges(Changes):
    """See `backburner.store.protocol.Store` for what each method promises."""

    def begin(
        self,
        task: NewTask,
        place: Place,
        *,
        limit: int | None,
        parked: bool = False,
        began_at: Instant | None = None,
    ) -> "Future[Begun]":
        spec = to_json(task.spec)
        begin = Begin(task, spec, place, limit, parked, began_at, self._started)
        return self._writer.write_together(BEGINS, begin)

    @cached_property
    def _started(self) -> str:
        """What the event of a start says."""
        return to_json({"attempt": 1, **self._where})

    async def park(self, task_id: str, attempt: int) -> Task | None:
        return await self._change(
            "task_park", EventKind.PARKED, {}, id=task_id, attempt=attempt, now=self.now()
        )

    async def register_worker(self, worker: Worker) -> None:
        await self._count(
            "worker_put",
            id=worker.id,
            boot_id=worker.boot_id,
            pid=worker.pid,
            hand_over=worker.hand_over,
            now=self.now(),
        )

    async def remove_worker(self, worker_id: str) -> bool:
        return bool(await self._count("worker_remove", id=worker_id))


@value
class Begin:
    """A task that runs from now on, as `Store.begin` is told."""

    task: NewTask
    spec: str
    place: Place
    limit: int | None
    parked: bool
    began_at: Instant | None
    started: str
    """What the event of its start says."""

    @property
    def sort(self) -> tuple[str, str, Kind, bool]:
        """Of what a session may have so many."""
        return self.task.owner, self.task.session, self.task.kind, self.parked


Begun = tuple[Task, bool]


@dataclass(slots=True)
class _Room:
    """What an owner may have running, and has."""

    limit: int | None
    running: int

    @property
    def full(self) -> bool:
        return self.limit is not None and self.running >= self.limit

    def refusal(self, owner: str) -> LimitReached:
        return LimitReached(
            f"{owner!r} has {self.running} running tasks, and {self.limit} is the limit",
            remedy="wait for one to end, or stop one",
        )


def begin_tasks(run: Statements, begins: Sequence[Begin]) -> list[Begun | Exception]:
    """Write many, each where its session has room for it. No id twice."""
    sorts = list(dict.fromkeys(begin.sort for begin in begins))
    owners = list(dict.fromkeys(begin.task.owner for begin in begins))
    ((last, taken, counts, limits),) = run.many(
        "tasks_before_begin",
        ids=[begin.task.id for begin in begins],
        sorts=sorts,
        owners=[[owner] for owner in owners],
    )
    there = frozenset(from_database(taken))
    active = dict(zip(sorts, from_database(counts), strict=True))
    rooms = dict(zip(owners, (_Room(*each) for each in from_database(limits)), strict=True))
    now = run.now()
    drawn = itertools.count(last + 1)
    of_owner: dict[str, list[tuple[Task, Begin]]] = {}
    answers: list[Begun | Exception] = []
    for begin in begins:
        if begin.task.id in there:
            answers.append(_there_already(run, begin))
        elif begin.limit is not None and active[begin.sort] >= begin.limit:
            answers.append(above_limit(begin.task, begin.limit))
        elif not begin.parked and rooms[begin.task.owner].full:
            answers.append(rooms[begin.task.owner].refusal(begin.task.owner))
        else:
            active[begin.sort] += 1
            rooms[begin.task.owner].running += 1
            task = _begun(next(drawn), begin, now)
            of_owner.setdefault(task.owner, []).append((task, begin))
            answers.append((task, True))
    for owner, theirs in of_owner.items():
        with run.acting_for(owner):
            _begin_of_owner(run, theirs, now)
    return answers


def _begin_of_owner(run: Statements, theirs: Sequence[tuple[Task, Begin]], now: Instant) -> None:
    events: list[Sequence[Any]] = []
    for task, begin in theirs:
        events.append((task.seq, 1, now, EventKind.CREATED, "{}"))
        events.append((task.seq, 2, now, EventKind.STARTED, begin.started))
        run.happens(task.id, EventKind.CREATED)
        run.happens(task.id, EventKind.STARTED)
    run.many("tasks_begin", rows=[_row(task, begin) for task, begin in theirs])
    run.many("events_insert", rows=events)


BEGINS = Together(begin_tasks, subject=lambda begin: begin.task.id, turn=1, whole=True)


def _there_already(run: Statements, begin: Begin) -> Begun | Exception:
    existing = run.task("task_get", id=begin.task.id)
    assert existing is not None
    try:
        return same_or_conflict(existing, begin.task, begin.spec), False
    except Conflict as error:
        return error


def above_limit(task: NewTask, limit: int) -> LimitReached:
    """One more would be one too many."""
    what = {
        Kind.TOOL: "background runs of tools",
        Kind.AGENT: "sub-agents",
        Kind.PYTHON: "Python tasks",
        Kind.SHELL: "shell tasks",
    }[task.kind]
    return LimitReached(
        f"session {task.session!r} has {limit} active {what}, and {limit} is the limit",
        remedy="wait for one to end, or stop one",
    )


def _begun(seq: int, begin: Begin, now: Instant) -> Task:
    """The row that is about to be written, without reading it."""
    task = begin.task
    began = now if begin.began_at is None else min(begin.began_at, now)
    return Task(
        seq=seq,
        id=task.id,
        owner=task.owner,
        session=task.session,
        kind=task.kind,
        title=task.title,
        spec=task.spec,
        state=State.RUNNING,
        attempt=1,
        created_at=began,
        started_at=began,
        max_runtime_s=task.max_runtime_s,
        parked_at=now if begin.parked else None,
        place=begin.place,
        parent=task.parent,
        schedule=task.schedule,
        priority=task.order.priority,
    )


def _row(task: Task, begin: Begin) -> Sequence[Any]:
    """In the order of `tasks_begin`."""
    place = begin.place
    return (
        task.seq, task.id, task.owner, task.session, task.kind, task.title, begin.spec,
        task.created_at, task.max_runtime_s, task.parent, task.schedule, place.boot_id,
        place.started_boot, place.pid, place.worker, task.parked_at, task.priority,
    )  # fmt: skip
