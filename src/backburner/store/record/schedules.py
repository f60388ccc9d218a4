"""The changes of schedules: made, fired, paused, ended."""

import json
from collections.abc import Sequence
from dataclasses import replace

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.errors import Conflict, LimitReached
from backburner.model.order import Order
from backburner.model.schedule import (
    FIRINGS_KEPT,
    MADE_UP_MAX,
    PUT_OFF_S,
    Firing,
    NewSchedule,
    Overlap,
    Schedule,
    ScheduleState,
    Start,
    Turn,
)
from backburner.store.protocol import Scope
from backburner.store.record.changes import Changes
from backburner.store.record.creates import Create, insert_tasks
from backburner.store.record.rows import to_json
from backburner.store.record.schedule_reading import to_schedule
from backburner.store.record.transaction import Statements

_SAME = (
    "owner", "session", "kind", "title", "cron", "at", "zone", "missed", "overlap", "jitter_s",
    "max_runtime_s", "priority",
)  # fmt: skip
"""What two that are the same have in common, beside their work."""


class ScheduleChanges(Changes):
    """See `backburner.store.schedules.ScheduleStore` for what each method promises."""

    async def schedule(self, schedule_id: str, scope: Scope | None = None) -> Schedule | None:
        return await self._look(lambda read: read.schedule(schedule_id, scope), scope)

    async def find_schedules(self, prefix: str, scope: Scope, limit: int) -> list[Schedule]:
        return await self._look(lambda read: read.find_schedules(prefix, scope, limit), scope)

    async def schedules(
        self, scope: Scope, *, states: Sequence[ScheduleState] = ()
    ) -> list[Schedule]:
        return await self._look(lambda read: read.schedules(scope, states), scope)

    async def due_schedules(self, now: Instant, limit: int) -> list[Schedule]:
        return await self._look(lambda read: read.due_schedules(now, limit))

    async def next_firing(self) -> Instant | None:
        return await self._look(lambda read: read.next_firing())

    async def firings(self, schedule_id: str, *, limit: int = 50) -> list[Firing]:
        return await self._look(lambda read: read.firings(schedule_id, limit))

    async def add_schedule(self, new: NewSchedule, *, limit: int) -> tuple[Schedule, bool]:
        spec = to_json(new.spec)

        def operation(run: Statements) -> tuple[Schedule, bool]:
            row = run.row(
                "schedule_insert",
                id=new.id,
                owner=new.owner,
                session=new.session,
                kind=new.kind,
                title=new.title,
                spec=spec,
                cron=new.cron,
                at=new.at,
                zone=new.zone,
                missed=new.missed,
                overlap=new.overlap,
                jitter_s=float(new.jitter_s),
                max_runtime_s=new.max_runtime_s,
                task_limit=new.task_limit,
                hand_over=new.hand_over,
                now=run.now(),
                next_at=new.next_at,
                due_at=new.due_at,
                priority=new.priority,
            )
            if row is None:
                existing = run.row("schedule_get", id=new.id)
                if existing is None:  # it is a stranger's
                    raise _taken(new.id)
                return same_or_conflict(to_schedule(existing), new, spec), False
            _refuse_above(limit, run, new)  # which undoes the insert
            return to_schedule(row), True

        return await self._writer.write(operation, owner=new.owner)

    async def fire(self, schedule_id: str, expected: Instant, turn: Turn) -> list[Firing] | None:
        def operation(run: Statements) -> list[Firing] | None:
            now = run.now()
            starts = turn.starts
            if starts and _put_off(run, schedule_id, expected, now):
                return None
            row = run.row(
                "schedule_move",
                id=schedule_id,
                expected=expected,
                next_at=turn.next_at,
                due_at=turn.due_at,
                last_at=max([expected, *(start.nominal_at for start in starts)]),
                now=now,
            )
            if row is None:
                return None
            schedule = to_schedule(row)
            firings = [_start(run, schedule, start, turn, now) for start in starts]
            if turn.passed_over is not None and expected not in {
                start.nominal_at for start in starts
            }:
                firings.append(Firing(schedule_id, expected, now, None, turn.passed_over))
            for firing in firings:
                run.rows(
                    "firing_insert",
                    schedule=schedule.seq,
                    nominal_at=firing.nominal_at,
                    at=firing.at,
                    task=firing.task,
                    reason=firing.reason,
                )
            started = [firing.task for firing in firings if firing.task is not None]
            run.rows(
                "schedule_fired",
                seq=schedule.seq,
                fired=len(started),
                last_task=started[-1] if started else None,
            )
            run.rows("firings_trim", schedule=schedule.seq, kept=FIRINGS_KEPT)
            return firings

        return await self._writer.write(operation)

    async def bring_forward(
        self,
        schedule_id: str,
        expected: Instant,
        *,
        next_at: Instant,
        due_at: Instant,
        anew: bool = False,
    ) -> bool:
        def operation(run: Statements) -> bool:
            if anew:
                run.rows("firings_undo", id=schedule_id, expected=expected, since=next_at)
                run.rows("schedule_undo", id=schedule_id, expected=expected, since=next_at)
            forward = {"id": schedule_id, "expected": expected}
            return bool(
                run.rows("schedule_bring_forward", next_at=next_at, due_at=due_at, **forward)
            )

        return await self._writer.write(operation)

    async def pause_schedule(
        self, schedule_id: str, scope: Scope, reason: str | None = None
    ) -> Schedule | None:
        return await self._turn_to("schedule_pause", schedule_id, scope, detail=reason)

    async def resume_schedule(
        self, schedule_id: str, scope: Scope, *, next_at: Instant, due_at: Instant
    ) -> Schedule | None:
        return await self._turn_to(
            "schedule_resume", schedule_id, scope, next_at=next_at, due_at=due_at
        )

    async def cancel_schedule(self, schedule_id: str, scope: Scope) -> Schedule | None:
        return await self._turn_to("schedule_cancel", schedule_id, scope, now=self.now())

    async def forget_schedules(self, before: Instant) -> int:
        return await self._count("schedules_forget", before=before)

    async def _turn_to(
        self, name: str, schedule_id: str, scope: Scope, /, **values: Instant | str | None
    ) -> Schedule | None:
        def operation(run: Statements) -> Schedule | None:
            row = run.row(name, id=schedule_id, owner=scope.owner, session=scope.session, **values)
            return None if row is None else to_schedule(row)

        return await self._writer.write(operation, owner=scope.owner)


def _put_off(run: Statements, schedule_id: str, expected: Instant, now: Instant) -> bool:
    """Whether there is no room in its session for a firing that must not be lost."""
    row = run.row("schedule_get", id=schedule_id)
    if row is None:
        return False
    schedule = to_schedule(row)
    if schedule.cron is not None and schedule.overlap is not Overlap.QUEUE:
        return False
    if run.rows("schedule_active_tasks", schedule=schedule_id):
        return False  # it waits for those, and takes no room meanwhile
    reason = _above_limit(run, schedule)
    return reason is not None and bool(
        run.rows(
            "schedule_put_off",
            id=schedule_id,
            expected=expected,
            due_at=now + round(PUT_OFF_S * clock.SECOND),
            detail=f"put off: {reason}",
        )
    )


def _start(run: Statements, schedule: Schedule, start: Start, turn: Turn, now: Instant) -> Firing:
    """Start one task, or say why not."""

    def skipped(reason: str) -> Firing:
        return Firing(schedule.id, start.nominal_at, now, None, reason)

    task = start.task
    others = [row[0] for row in run.rows("schedule_active_tasks", schedule=schedule.id)]
    waits = bool(others) and schedule.overlap is not Overlap.PARALLEL
    if waits and schedule.overlap is Overlap.SKIP and not turn.made_up:
        return skipped(f"{others[-1]} has not ended")
    if waits and len(others) > MADE_UP_MAX:
        return skipped(f"{len(others)} tasks of earlier firings have not ended")
    if waits:
        waiting = Order(after=(others[-1],), after_failure=True, priority=schedule.priority)
        task = replace(task, order=waiting)
    elif (reason := _above_limit(run, schedule)) is not None:
        return skipped(reason)
    create = Create(task, to_json(task.spec), schedule.task_limit, start.ending, start.detail)
    if not insert_tasks(run, [create]):
        return skipped(f"the id {task.id} is taken")
    # Of those that are not made up for the last one that is tells.
    last = turn.made_up and start is turn.starts[-1]
    return Firing(schedule.id, start.nominal_at, now, task.id, turn.passed_over if last else None)


def _above_limit(run: Statements, schedule: Schedule) -> str | None:
    row = run.row(
        "task_count_active",
        owner=schedule.owner,
        session=schedule.session,
        kind=schedule.kind,
        in_queue=False,
    )
    limit = schedule.task_limit
    if row is None or row[0] < limit:
        return None
    return f"the session has {row[0]} active {schedule.kind} tasks, and {limit} is the limit"


def _refuse_above(limit: int, run: Statements, new: NewSchedule) -> None:
    row = run.row("schedule_count", owner=new.owner, session=new.session)
    others = row[0] - 1 if row else 0
    if others >= limit:
        raise LimitReached(
            f"session {new.session!r} has {others} schedules, and {limit} is the limit",
            remedy="cancel one: paused ones count too, because they can go on",
        )


def same_or_conflict(existing: Schedule, wanted: NewSchedule, spec: str) -> Schedule:
    """The schedule that is there, where it is what is wanted; Conflict where it is not."""
    same = existing.spec == json.loads(spec) and all(
        getattr(existing, name) == getattr(wanted, name) for name in _SAME
    )
    if same and not existing.state.ended:
        return existing
    # Of a stranger's, not even that it has ended.
    raise _taken(wanted.id, f": that one is {existing.state}" if same else "")


def _taken(schedule_id: str, why: str = "") -> Conflict:
    return Conflict(
        f"the id {schedule_id!r} cannot be used for this schedule{why}",
        remedy="choose another id, or leave it out",
    )
