"""A task, an event and a signal as JSON: the one spelling that every surface shows."""

from typing import Any

from backburner.model.clock import Instant, rfc3339
from backburner.model.events import Event
from backburner.model.home import Home
from backburner.model.signals import Signal
from backburner.model.task import Task


def _time(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339(instant)


def task_document(
    task: Task, home: Home, *, output_bytes: int, dropped_bytes: int, cursor: str
) -> dict[str, Any]:
    """A task as JSON. The output's numbers are given apart: while it runs they are in the files."""
    folder = home.attempt(task.id, task.attempt)
    progress = task.progress
    return {
        "id": task.id,
        "session": task.session,
        "owner": task.owner,
        "kind": task.kind.value,
        "title": task.title,
        "state": task.state.value,
        "detail": task.detail,
        "progress": None
        if progress is None
        else {
            "current": progress.current,
            "total": progress.total,
            "unit": progress.unit,
            "label": progress.label,
        },
        "ready_at": _time(task.ready_at),
        "parked_at": _time(task.parked_at),
        "exit_code": task.exit_code,
        "error": None
        if task.error is None
        else {"kind": task.error.kind.value, "message": task.error.message},
        "summary": task.summary,
        "result": task.result,
        "attempt": task.attempt,
        "pid": task.pid,
        "created_at": rfc3339(task.created_at),
        "started_at": _time(task.started_at),
        "finished_at": _time(task.finished_at),
        "max_runtime_s": task.max_runtime_s,
        "output": {"bytes": output_bytes, "dropped_bytes": dropped_bytes, "cursor": cursor},
        "paths": {"dir": folder.path, "log": folder.log, "result": folder.result},
        "leftovers": task.leftovers,
        "signal": None
        if task.signal_state is None
        else {
            "state": task.signal_state.value,
            "delivered_at": _time(task.signal_delivered_at),
        },
        "links": {"parent": task.parent, "schedule": task.schedule},
    }


def event_document(event: Event) -> dict[str, Any]:
    """An event as JSON."""
    return {
        "seq": event.seq,
        "task": event.task,
        "number": event.number,
        "at": rfc3339(event.at),
        "kind": event.kind.value,
        "data": event.data,
    }


def signal_document(signal: Signal) -> dict[str, Any]:
    """A signal as JSON."""
    return {
        "id": signal.id,
        "key": signal.key,
        "task": signal.task,
        "session": signal.session,
        "kind": signal.kind.value,
        "text": signal.text,
        "data": signal.data,
        "state": signal.state.value,
        "reason": signal.reason,
        "channel": signal.channel,
        "tries": signal.tries,
        "created_at": rfc3339(signal.created_at),
        "delivered_at": _time(signal.delivered_at),
    }
