"""Reading the record: every read is one indexed statement with a bounded answer.

No event loop is needed. How a statement reaches its database is the store's own affair.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from backburner.model import clock
from backburner.model.channels import Channel
from backburner.model.clock import Instant
from backburner.model.events import Event
from backburner.model.messages import Message
from backburner.model.order import LONGEST_RETRY_S, OwnerLimit, Queue, Wait
from backburner.model.questions import Question
from backburner.model.signals import Signal, SignalKind, SignalState
from backburner.model.states import ACTIVE, Kind, State
from backburner.model.task import StopRequest, Task
from backburner.model.worker import Worker
from backburner.store.protocol import Scope
from backburner.store.record.browsing import NEWEST, BrowsingReader
from backburner.store.record.leases import LeaseClock
from backburner.store.record.rows import (
    to_channel,
    to_event,
    to_json,
    to_message,
    to_owner_limit,
    to_question,
    to_queue,
    to_signal,
    to_task,
    to_wait,
)
from backburner.store.record.schedule_reading import ScheduleReader
from backburner.store.record.token_reading import TokenReader
from backburner.store.record.transaction import Row


class Reader(ScheduleReader, TokenReader, BrowsingReader):
    """The read half of a store."""

    _leases: LeaseClock

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """The rows of a statement that only one of the databases has."""
        return self._rows(name, **values)

    def close(self) -> None:
        """Let go of the database."""
        raise NotImplementedError

    def _tasks(self, name: str, /, **values: Any) -> list[Task]:
        """The tasks of a statement; those that wait for something say for what."""
        tasks = [to_task(row) for row in self._rows(name, **values)]
        queued = [task for task in tasks if task.state is State.QUEUED]
        if not any(map(_is_ordered, queued)) and not (queued and self._rows("owner_limit_any")):
            return tasks
        waits = self.waits()
        return [replace(task, wait=waits.get(task.id)) for task in tasks]

    def get(self, task_id: str, scope: Scope | None = None) -> Task | None:
        """See Store.get."""
        for task in self._tasks("task_get", id=task_id):
            if scope is None or within(task, scope):
                return task
        return None

    def find(self, prefix: str, scope: Scope, limit: int) -> list[Task]:
        """See Store.find."""
        return self._tasks(
            "task_find", prefix=prefix, owner=scope.owner, session=scope.session, limit=limit
        )

    def newest(
        self,
        scope: Scope,
        *,
        limit: int,
        states: Sequence[State] = (),
        before: int | None = None,
    ) -> list[Task]:
        """See Store.newest."""
        values: dict[str, Any] = {
            "owner": scope.owner,
            "states": to_json(states),
            "before": NEWEST if before is None else before,
            "limit": limit,
        }
        if states and set(states) <= set(ACTIVE):  # few, among many that have ended
            return self._tasks("task_newest_active", session=scope.session, **values)
        if scope.session is None:
            return self._tasks("task_newest_of_owner", **values)
        return self._tasks("task_newest_of_session", session=scope.session, **values)

    def active(self, kind: Kind | None = None) -> list[Task]:
        """See Store.active."""
        return self._tasks("task_active", kind=kind)

    def outlived_agents(self) -> list[Task]:
        """See Store.outlived_agents."""
        return self._tasks("task_outlived_agents")

    def parked(self, scope: Scope) -> int:
        """See Store.parked."""
        return self._rows("tasks_parked", owner=scope.owner, session=scope.session)[0][0]

    def workers(self) -> list[Worker]:
        """See Store.workers."""
        return [Worker(*row) for row in self._rows("workers")]

    def tasks_of_worker(self, worker_id: str) -> list[Task]:
        """See Store.tasks_of_worker."""
        return self._tasks("tasks_of_worker", worker=worker_id)

    def stops_of_worker(self, worker_id: str) -> dict[str, StopRequest]:
        """See Store.stops_of_worker."""
        rows = self._rows("tasks_to_stop_of_worker", worker=worker_id)
        return {task_id: StopRequest(at, grace_s) for task_id, at, grace_s in rows}

    def waiting_for_application(self, limit: int = 1000) -> list[Task]:
        """See Store.waiting_for_application."""
        return self._tasks("tasks_for_applications", limit=limit)

    def kept(self) -> list[Task]:
        """See Store.kept."""
        return self._tasks("task_kept")

    def any_active(self) -> bool:
        """Whether a keeper is needed."""
        return bool(self._rows("task_any_active")[0][0])

    def waiting_for_keeper(self, limit: int = 1000) -> list[Task]:
        """See Store.waiting_for_keeper."""
        rows = self._rows("task_waiting_for_keeper", limit=limit, **self._retry_times())
        return [to_task(row) for row in rows]

    def waits(self) -> dict[str, Wait]:
        """See Store.waits."""
        return dict(to_wait(row) for row in self._rows("task_waits", **self._retry_times()))

    def _retry_times(self) -> dict[str, Instant]:
        """Now, and the latest time to wait for: what is later than that is of a clock set back."""
        now = self._leases.time_of_day()
        return {"now": now, "latest": now + round(LONGEST_RETRY_S * clock.SECOND)}

    def next_due(self) -> Instant | None:
        """See Store.next_due."""
        return self._rows("task_next_due", now=self._leases.time_of_day())[0][0]

    def events(self, task_id: str, *, after: int, limit: int) -> list[Event]:
        """See Store.events."""
        return [
            to_event(row)
            for row in self._rows("events_of_task", id=task_id, after=after, limit=limit)
        ]

    def events_since(self, seq: int, *, limit: int) -> list[Event]:
        """See Store.events_since."""
        return [to_event(row) for row in self._rows("events_since", seq=seq, limit=limit)]

    def last_event(self) -> int:
        """See Store.last_event."""
        return self._rows("event_last")[0][0]

    def any_free_signal(self, query: str, **values: str | int | None) -> bool:
        """Whether one of the statements that find signals to claim would find any."""
        now = self._leases.now()
        return bool(self._rows(query, limit=1, boot=self._leases.boot, boot_now=now, **values))

    def signals(
        self,
        scope: Scope,
        *,
        states: Sequence[SignalState],
        task: str | None,
        channel: str | None = None,
        after: int,
        limit: int,
    ) -> list[Signal]:
        """See Store.signals."""
        values: dict[str, Any] = {
            "owner": scope.owner,
            "channel": channel,
            "states": to_json(states),
            "after": after,
            "limit": limit,
        }
        if task is not None:
            rows = self._rows("signals_of_task", task=task, session=scope.session, **values)
        elif scope.session is None:
            rows = self._rows("signals_of_owner", **values)
        else:
            rows = self._rows("signals_of_session", session=scope.session, **values)
        return [to_signal(row) for row in rows]

    def questions(self, task_id: str) -> list[Question]:
        """See Store.questions."""
        return [to_question(row) for row in self._rows("questions_of_task", task=task_id)]

    def answers(self) -> list[Question]:
        """See Store.answers."""
        return [to_question(row) for row in self._rows("questions_answered")]

    def next_message(self, task_id: str, attempt: int, after: int) -> Message | None:
        """The first that has not reached the task."""
        rows = self._rows("message_next", task=task_id, attempt=attempt, after=after)
        return to_message(rows[0]) if rows else None

    def messages(self, limit: int = 1000) -> list[Message]:
        """See Store.messages."""
        return [to_message(row) for row in self._rows("messages_for_processes", limit=limit)]

    def session_ended(self, scope: Scope) -> bool:
        """See Store.session_ended."""
        return bool(self._rows("session_has_ended", owner=scope.owner, session=scope.session))

    def queues(self) -> list[Queue]:
        """See Store.queues."""
        return [to_queue(row) for row in self._rows("queues")]

    def owner_limits(self) -> list[OwnerLimit]:
        """See Store.owner_limits."""
        return [to_owner_limit(row) for row in self._rows("owner_limits")]

    def unqueued(self) -> tuple[int, int]:
        """See Store.unqueued."""
        waiting, running = self._rows("tasks_unqueued")[0]
        return waiting, running

    def channels(self) -> list[Channel]:
        """See Store.channels."""
        return [to_channel(row) for row in self._rows("channels")]

    def next_delivery(self, passing_over: Collection[str] = ()) -> int | None:
        """See Store.next_delivery."""
        boot, now = self._leases.boot, self._leases.now()
        names = to_json(list(passing_over))
        at = self._rows("signals_next_push", boot=boot, boot_now=now, passing_over=names)[0][0]
        return self._leases.in_boot_time(at) if at else at

    def wished(self, scope: Scope) -> frozenset[SignalKind] | None:
        """See Store.wished."""
        rows = self._rows("wish_of_session", owner=scope.owner, session=scope.session)
        return frozenset(map(SignalKind, json.loads(rows[0][0]))) if rows else None

    def prunable(
        self, before: int, scope: Scope | None, limit: int, after: Task | None
    ) -> list[Task]:
        """See Store.prunable."""
        rows = self._rows(
            "task_prunable",
            before=before,
            after=after.finished_at if after else -1,
            after_seq=after.seq if after else -1,
            owner=scope.owner if scope else None,
            session=scope.session if scope else None,
            limit=limit,
        )
        return [to_task(row) for row in rows]


def _is_ordered(task: Task) -> bool:
    return task.queue is not None or bool(task.after) or task.not_before is not None


def within(task: Task, scope: Scope) -> bool:
    """Whether the task exists for this caller."""
    return task.owner == scope.owner and scope.session in (None, task.session)
