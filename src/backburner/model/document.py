"""A task, an event and a signal as JSON: the one spelling that every surface shows."""

from collections.abc import Callable, Sequence
from typing import Any

from backburner.model.allowance import Allowance
from backburner.model.channels import Channel, shown_target
from backburner.model.clock import Instant, rfc3339
from backburner.model.events import Event
from backburner.model.home import Home
from backburner.model.questions import Question
from backburner.model.signals import END_SIGNALS, Signal
from backburner.model.task import Task
from backburner.model.values import value


def _time(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339(instant)


@value
class Artifact:
    """A file that a job has added to its task."""

    name: str
    bytes: int
    path: str


def task_document(
    task: Task,
    home: Home,
    *,
    output_bytes: int,
    dropped_bytes: int,
    cursor: str,
    artifacts: Sequence[Artifact] = (),
    is_here: Callable[[str], bool] = lambda _: True,
) -> dict[str, Any]:
    """A task as JSON. The output's numbers are given apart: while it runs they are in the files.

    Paths are given of what ``is_here``: of a task on another machine there may be nothing yet.
    """
    folder = home.attempt(task.id, task.attempt)
    paths = {"dir": folder.path, "log": folder.log, "result": folder.result}
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
        "paths": {name: path if is_here(path) else None for name, path in paths.items()},
        "leftovers": task.leftovers,
        "signal": None
        if task.signal_state is None
        else {
            "state": task.signal_state.value,
            "delivered_at": _time(task.signal_delivered_at),
        },
        "links": {"parent": task.parent, "schedule": task.schedule},
        "order": {
            "queue": task.queue,
            "after": list(task.after),
            "after_failure": task.after_failure,
            "retries_left": task.retries_left,
            "failures": task.failures,
            "priority": task.priority,
        },
        "wait": None if task.wait is None else task.wait.document(),
        "allowance": Allowance.of(task.spec).document(),
        "question": None if task.question is None else question_document(task.question),
        "artifacts": [
            {"name": each.name, "bytes": each.bytes, "path": each.path} for each in artifacts
        ],
        "usage": None if task.usage is None else dict(task.usage),
    }


def question_document(question: Question) -> dict[str, Any]:
    """A question as JSON. Not the answer, which may be a secret."""
    return {
        "id": question.id,
        "text": question.text,
        "asked_at": rfc3339(question.asked_at),
        "answered_at": _time(question.answered_at),
        "withdrawn": question.withdrawn,
        "schema": question.schema,
        "asker": question.asker,
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


def signal_document(signal: Signal, home: Home | None = None) -> dict[str, Any]:
    """A signal as JSON. With ``home``, one that tells of an end says where its files are (E8); not

    in a record of many machines, where they are on one of those.
    """
    attempt = signal.data.get("attempt") if signal.kind in END_SIGNALS.values() else None
    paths: dict[str, Any] = {}
    if home is not None and not home.shared and attempt is not None:
        folder = home.attempt(signal.task, attempt)
        paths = {"paths": {"log": folder.log, "result": folder.result}}
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
        "retry_at": _time(signal.retry_at),
        **paths,
    }


def channel_document(channel: Channel) -> dict[str, Any]:
    """A channel as JSON, without what could be a password in its address."""
    return {
        "name": channel.name,
        "owner": channel.owner,
        "session": channel.session,
        "type": channel.kind.value,
        "target": shown_target(channel),
        "kinds": None if channel.kinds is None else sorted(channel.kinds),
        "allow_private": channel.allow_private,
        "paused": channel.paused,
    }
