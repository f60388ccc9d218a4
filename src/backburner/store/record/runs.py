"""The changes of runs: tasks that an application carries out in itself, and those applications."""

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.errors import LimitReached
from backburner.model.events import EventKind
from backburner.model.states import Kind, State
from backburner.model.task import NewTask, Place, Task
from backburner.model.worker import Worker
from backburner.store.record.changes import Changes
from backburner.store.record.rows import to_json
from backburner.store.record.tasks import same_or_conflict
from backburner.store.record.transaction import Statements


class RunChanges(Changes):
    """See `backburner.store.protocol.Store` for what each method promises."""

    async def begin(
        self,
        task: NewTask,
        place: Place,
        *,
        limit: int | None,
        parked: bool = False,
        began_at: Instant | None = None,
    ) -> tuple[Task, bool]:
        spec = to_json(task.spec)

        def operation(run: Statements) -> tuple[Task, bool]:
            now = clock.now()
            began = now if began_at is None else min(began_at, now)
            row = run.row(
                "task_begin",
                id=task.id,
                owner=task.owner,
                session=task.session,
                kind=task.kind,
                title=task.title,
                spec=spec,
                began=began,
                max_runtime_s=task.max_runtime_s,
                parent=task.parent,
                schedule=task.schedule,
                boot_id=place.boot_id,
                started_boot=place.started_boot,
                pid=place.pid,
                worker=place.worker,
                parked_at=now if parked else None,
                limit=limit,
            )
            if row is None:
                existing = run.task("task_get", id=task.id)
                if existing is None:
                    raise above_limit(task, limit or 0)
                return same_or_conflict(existing, task, spec), False
            run.rows("events_of_begin", task=row[0], at=now)
            return _begun(row[0], task, place, began, now if parked else None), True

        return await self._writer.write(operation)

    async def park(self, task_id: str, attempt: int) -> Task | None:
        return await self._change(
            "task_park", EventKind.PARKED, {}, id=task_id, attempt=attempt, now=clock.now()
        )

    async def register_worker(self, worker: Worker) -> None:
        await self._count(
            "worker_put",
            id=worker.id,
            boot_id=worker.boot_id,
            pid=worker.pid,
            hand_over=worker.hand_over,
            now=clock.now(),
        )

    async def remove_worker(self, worker_id: str) -> bool:
        return bool(await self._count("worker_remove", id=worker_id))


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


def _begun(
    seq: int, task: NewTask, place: Place, began: Instant, parked_at: Instant | None
) -> Task:
    """The row that was just written, without reading it."""
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
        parked_at=parked_at,
        place=place,
        parent=task.parent,
        schedule=task.schedule,
    )
