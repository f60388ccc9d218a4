"""What happens inside one transaction: statements by name, and the steps that changes share.

How a statement reaches its database is the store's own affair: `rows` is all that it adds.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.ending import Ending
from backburner.model.errors import StoreError
from backburner.model.events import EventKind
from backburner.model.signals import (
    END_SIGNALS,
    NewSignal,
    SignalKind,
    SignalState,
    activity_key,
    end_key,
)
from backburner.model.states import sources
from backburner.model.task import Task
from backburner.model.telling import end_text
from backburner.model.wake import Wake, wake_of
from backburner.store.protocol import Output
from backburner.store.record.rows import to_json, to_task

Row = tuple[Any, ...]
Start = tuple[str, int]
"""A boot, and a time in it."""


class Statements:
    """Runs the named statements on one connection."""

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Every row of a statement."""
        raise NotImplementedError

    def row(self, name: str, /, **values: Any) -> Row | None:
        """The first row; the statement is run to its end."""
        rows = self.rows(name, **values)
        return rows[0] if rows else None

    def task(self, name: str, /, **values: Any) -> Task | None:
        """The task that a statement gives."""
        row = self.row(name, **values)
        return None if row is None else to_task(row)

    def add_event(self, task: Task, kind: EventKind, data: dict[str, Any]) -> None:
        """The event that goes with a change that the task's row has counted already."""
        self.rows("event_insert", task=task.seq, at=clock.now(), kind=kind, data=to_json(data))

    def finish(
        self,
        task_id: str,
        attempt: int,
        ending: Ending,
        *,
        output: Output | None = None,
        leftovers: int = 0,
        usage: Mapping[str, int] | None = None,
    ) -> Task | None:
        """An active state → the ending, with its event and its signal."""
        error = ending.error
        task = self.task(
            "task_finish",
            id=task_id,
            attempt=attempt,
            state=ending.state,
            sources=_sources_of(ending),
            now=clock.now(),
            exit_code=ending.exit_code,
            error_kind=error.kind if error else None,
            error_message=error.message if error else None,
            summary=ending.summary,
            result=None if ending.result is None else to_json(ending.result),
            output_bytes=output.total if output else None,
            dropped_bytes=output.dropped if output else None,
            leftovers=leftovers,
            usage=None if usage is None else to_json(dict(usage)),
        )
        if task is None:
            return None
        finished_at = task.finished_at or 0
        data = ending_data(ending, leftovers)
        self.add_event(task, EventKind.FINISHED, data)
        self.rows("signals_of_ended_questions", task=task.seq)
        match wake_of(task.spec):
            case Wake.SILENT:
                return replace(task, signal_state=None)
            case Wake.ON_ACTIVITY:
                self.rows("activity_is_over", task=task.seq, prefix=activity_key(task_id))
            case Wake.ON_TERMINAL:
                pass
        text = end_text(task.title, task_id, ending, task.elapsed_us(finished_at))
        told = {"title": task.title, "tool": task.spec.get("tool"), "attempt": attempt, **data}
        if told["tool"] is None:
            del told["tool"]
        signal = NewSignal(END_SIGNALS[ending.state], end_key(task_id), text, told)
        state = self.tell(task, signal, finished_at)
        if state is None:
            raise StoreError(f"an end of {task_id} was told before")
        return task if state == task.signal_state else replace(task, signal_state=state)

    def tell(
        self, task: Task, signal: NewSignal, now: Instant, *, start: Start | None = None
    ) -> SignalState | None:
        """Tell the session and its channels, once. Answers what became of it in the inbox.

        ``start`` is the boot and the time in it from when on they may be told.
        """
        silent = signal.kind is SignalKind.MESSAGE and wake_of(task.spec) is Wake.SILENT
        boot, begin = start or (None, None)
        row = self.row(
            "signal_insert",
            key=signal.key,
            task=task.seq,
            owner=task.owner,
            session=task.session,
            kind=signal.kind,
            text=signal.text,
            data=to_json(signal.data),
            now=now,
            quiet="the task is to be silent" if silent else None,
            boot=boot,
            notify="notify" in task.spec and signal.kind not in _NOT_ON_THE_SCREEN,
            **{"from": begin},
        )
        return None if row is None else SignalState(row[0])


_NOT_ON_THE_SCREEN = (SignalKind.CANCELED, SignalKind.MESSAGE)


_SOURCES: dict[str, str] = {}


def _sources_of(ending: Ending) -> str:
    if ending.state not in _SOURCES:
        _SOURCES[ending.state] = to_json(sources(ending.state))
    return _SOURCES[ending.state]


def ending_data(ending: Ending, leftovers: int = 0) -> dict[str, Any]:
    """What an event and a signal say of an ending."""
    error = ending.error
    data = {
        "state": ending.state.value,
        "exit_code": ending.exit_code,
        "error": {"kind": error.kind.value, "message": error.message} if error else None,
        "summary": ending.summary,
        "leftovers": leftovers or None,
    }
    return {name: value for name, value in data.items() if value is not None}
