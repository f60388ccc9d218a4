"""Between rows and values: the one place that knows the order of the columns."""

import json
from typing import Any

from backburner.model.ending import TaskError
from backburner.model.events import Event, EventKind
from backburner.model.signals import Signal, SignalKind, SignalState
from backburner.model.states import ErrorKind, Kind, State
from backburner.model.task import Place, Progress, StopRequest, Task

TASK_COLUMNS = """t.seq, t.id, t.owner, t.session, t.kind, t.title, t.spec, t.state, t.attempt,
    t.created_at, t.started_at, t.finished_at, t.max_runtime_s, t.detail, t.progress, t.ready_at,
    t.parked_at, t.exit_code, t.error_kind, t.error_message, t.summary, t.result, t.boot_id,
    t.started_boot, t.pid, t.cgroup, t.stop_at, t.stop_grace_s, t.output_bytes, t.dropped_bytes,
    t.leftovers, t.parent, t.schedule, s.state, s.delivered_at"""


def to_json(value: Any) -> str:
    """Compact JSON; anything that is no JSON is an error of the caller."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def to_task(row: tuple[Any, ...]) -> Task:
    """A row of TASK_COLUMNS as a task."""
    (
        seq, task_id, owner, session, kind, title, spec, state, attempt,
        created_at, started_at, finished_at, max_runtime_s, detail, progress, ready_at,
        parked_at, exit_code, error_kind, error_message, summary, result, boot_id,
        started_boot, pid, cgroup, stop_at, stop_grace_s, output_bytes, dropped_bytes,
        leftovers, parent, schedule, signal_state, signal_delivered_at,
    ) = row  # fmt: skip
    return Task(
        seq=seq,
        id=task_id,
        owner=owner,
        session=session,
        kind=Kind(kind),
        title=title,
        spec=json.loads(spec),
        state=State(state),
        attempt=attempt,
        created_at=created_at,
        started_at=started_at,
        finished_at=finished_at,
        max_runtime_s=max_runtime_s,
        detail=detail,
        progress=Progress(**json.loads(progress)) if progress else None,
        ready_at=ready_at,
        parked_at=parked_at,
        exit_code=exit_code,
        error=TaskError(ErrorKind(error_kind), error_message) if error_kind else None,
        summary=summary,
        result=json.loads(result) if result else None,
        place=Place(boot_id, started_boot, pid, cgroup) if boot_id else None,
        stop=StopRequest(stop_at, stop_grace_s) if stop_at is not None else None,
        output_bytes=output_bytes,
        dropped_bytes=dropped_bytes,
        leftovers=leftovers,
        parent=parent,
        schedule=schedule,
        signal_state=SignalState(signal_state) if signal_state else None,
        signal_delivered_at=signal_delivered_at,
    )


def to_event(row: tuple[Any, ...]) -> Event:
    """A row of an events query as an event."""
    seq, task, number, at, kind, data = row
    return Event(seq, task, number, at, EventKind(kind), json.loads(data))


def to_signal(row: tuple[Any, ...]) -> Signal:
    """A row of a signals query as a signal."""
    (
        seq, key, task, owner, session, kind, text, data, state, reason, channel, tries,
        created_at, delivered_at,
    ) = row  # fmt: skip
    return Signal(
        seq, key, task, owner, session, SignalKind(kind), text, json.loads(data),
        SignalState(state), reason, channel, tries, created_at, delivered_at,
    )  # fmt: skip
