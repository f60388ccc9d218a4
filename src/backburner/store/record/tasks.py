"""The changes of tasks: created, claimed, tried again, ended, and what is noted about them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.states import State
from backburner.model.task import EndedFor, NewTask, Place, Task
from backburner.store.protocol import Facts, Output, Scope
from backburner.store.record.changes import Changes
from backburner.store.record.claims import CLAIMS, Claim
from backburner.store.record.creates import CREATES, Create
from backburner.store.record.ends import ENDS, End, end_task
from backburner.store.record.messages import tell_activity
from backburner.store.record.reading import within
from backburner.store.record.rows import to_json
from backburner.store.record.transaction import Statements, ending_data


class TaskChanges(Changes):
    """See `backburner.store.protocol.Store` for what each method promises."""

    async def create(
        self,
        task: NewTask,
        *,
        limit: int,
        ending: Ending | None = None,
        detail: str | None = None,
    ) -> Task:
        order = Create(task, to_json(task.spec), limit, ending, detail)
        return await self._writer.write_together(CREATES, order)

    async def claim(self, task_id: str, attempt: int, place: Place) -> Task | None:
        claimed = await self._writer.write_together(CLAIMS, Claim(task_id, attempt, place))
        return claimed and claimed.task

    async def requeue(
        self, task_id: str, attempt: int, reason: str, *, hand_over: str | None = None
    ) -> Task | None:
        return await self._writer.write(
            lambda run: requeue(run, task_id, attempt, reason, hand_over=hand_over)
        )

    async def fail_try(
        self,
        task_id: str,
        attempt: int,
        ending: Ending,
        not_before: Instant,
    ) -> Task | None:
        def operation(run: Statements) -> Task | None:
            task = run.task("task_fail_try", id=task_id, attempt=attempt, not_before=not_before)
            if task is not None:
                again = {"attempt": attempt, "next_at": clock.rfc3339(not_before)}
                data = {**ending_data(ending), **again}
                run.add_event(task, EventKind.FAILED_TRY, data)
                run.rows("signals_of_ended_questions", task=task.seq)
            return task

        return await self._writer.write(operation)

    def finish(
        self,
        task_id: str,
        attempt: int,
        ending: Ending,
        *,
        output: Output | None = None,
        leftovers: int = 0,
        usage: Mapping[str, int] | None = None,
        begun: Task | None = None,
    ) -> Awaitable[Task | None]:
        return self._writer.write_together(
            ENDS, End(task_id, attempt, ending, output, leftovers, usage, begun)
        )

    def refuse(self, task_id: str, attempt: int, ending: Ending) -> Awaitable[Task | None]:
        return self._writer.write_together(ENDS, End(task_id, attempt, ending, unbegun=True))

    async def request_stop(self, task_id: str, scope: Scope, grace_s: float) -> Task | None:
        def operation(run: Statements) -> Task | None:
            task = run.task("task_get", id=task_id)
            if task is None or not within(task, scope):
                return None
            return request_stop(run, task, grace_s)

        return await self._writer.write(operation, owner=scope.owner)

    async def begin_ending(self, task_id: str, attempt: int, reason: EndedFor) -> bool:
        begun = await self._change(
            "task_begin_ending",
            EventKind.ENDING,
            {"reason": reason.value},
            id=task_id,
            attempt=attempt,
            reason=reason,
        )
        return begun is not None

    async def note(self, task_id: str, attempt: int, kind: EventKind, facts: Facts) -> bool:
        def operation(run: Statements) -> bool:
            shown = None if facts.progress is None else asdict(facts.progress)
            now = run.now()
            task = run.task(
                "task_note",
                id=task_id,
                attempt=attempt,
                detail=facts.detail,
                progress=None if shown is None else to_json(shown),
                leftovers=facts.leftovers,
                output_bytes=facts.output.total if facts.output else None,
                dropped_bytes=facts.output.dropped if facts.output else None,
                result=None if facts.result is None else to_json(facts.result.value),
                reported=facts.reported,
                ready_at=now if facts.ready else None,
            )
            if task is None:
                return False
            told = {
                "detail": facts.detail,
                "progress": shown,
                "leftovers": facts.leftovers,
                **facts.data,
            }
            told = {name: value for name, value in told.items() if value is not None}
            run.add_event(task, kind, told)
            if facts.signal is not None:
                run.tell(task, facts.signal, now)
            if facts.detail is not None:
                tell_activity(run, task, facts.detail, now, self._leases)
            return True

        return await self._writer.write(operation)

    async def forget(
        self, task_ids: Sequence[str], gone: Callable[[Sequence[str]], None] | None = None
    ) -> int:
        return len(await self._ids("task_forget", task_ids, gone))

    async def unknown(self, ids: Sequence[str], gone: Callable[[Sequence[str]], None]) -> None:
        await self._ids("task_unknown", ids, gone)

    async def _ids(
        self, name: str, ids: Sequence[str], then: Callable[[Sequence[str]], None] | None
    ) -> list[str]:
        values = to_json(ids)
        return await self._writer.write(
            lambda run: [task_id for (task_id,) in run.rows(name, ids=values)], then
        )


def request_stop(run: Statements, task: Task, grace_s: float) -> Task | None:
    """See Store.request_stop."""
    if task.state is State.QUEUED:
        return end_task(run, End(task.id, task.attempt, Ending.canceled()))
    if task.stop is not None and task.stop.grace_s <= grace_s:
        return task  # asked before, and at least as urgently
    asked = run.task("task_request_stop", id=task.id, now=run.now(), grace_s=grace_s)
    if asked is None:
        return task
    run.add_event(asked, EventKind.STOP_REQUESTED, {"grace_s": grace_s})
    return run.task("task_get", id=task.id)


def requeue(
    run: Statements, task_id: str, attempt: int, reason: str, *, hand_over: str | None = None
) -> Task | None:
    """See `Store.requeue`."""
    task = run.task("task_requeue", id=task_id, attempt=attempt, hand_over=hand_over)
    if task is None:
        return None
    run.add_event(task, EventKind.REQUEUED, {"attempt": task.attempt, "reason": reason})
    if task.stop is not None:  # someone asked for its end: it is not tried again
        return end_task(run, End(task_id, task.attempt, Ending.canceled()))
    return task
