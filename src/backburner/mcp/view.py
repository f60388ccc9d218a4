"""A task as the Tasks extension shows it, made from its record each time."""

from typing import TYPE_CHECKING, Any

from backburner.mcp.inputs import key_of, request_of
from backburner.mcp.results import error_in, of_ended
from backburner.model import clock
from backburner.model.clock import rfc3339
from backburner.model.ending import Ending, spelling
from backburner.model.sayable import sayable
from backburner.model.states import State
from backburner.model.telling import how_it_ended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backburner.app import Task
    from backburner.model.questions import Question

_INTERNAL_ERROR = -32603

_POLL_FIRST_MS = 1_000
_POLL_LAST_MS = 15_000
_POLL_SHARE = 10
"""Whoever looks after a tenth of the time that it has run so far loses little, and costs little."""


def created(task: "Task", retention_s: float) -> dict[str, Any]:
    """The reply to the call that has become a task."""
    status = spelling(task.state, task.error).mcp if task.state.terminal else "working"
    return {"resultType": "task", **_common(task, status, retention_s)}


async def detailed(
    task: "Task", questions: "Sequence[Question]", retention_s: float, *, elicits: bool
) -> dict[str, Any]:
    """All that is known of it: its result, its error or its questions among that.

    ``elicits``: the client can ask its user. For one that cannot, a task that waits for an answer
    goes on working, and says what it asks.
    """
    asked = [each for each in questions if each.open and not each.approval]
    if task.state.terminal:
        return await _ended(task, retention_s)
    if task.state is State.INPUT_REQUIRED and asked and elicits:
        requests = {key_of(each): request_of(each) for each in asked}
        return {
            **_common(task, "input_required", retention_s),
            "inputRequests": requests,
        }
    return _common(task, "working", retention_s)


async def _ended(task: "Task", retention_s: float) -> dict[str, Any]:
    error = error_in(task.result) if task.state is State.FAILED else None
    status = "failed" if error is not None else spelling(task.state, task.error).mcp
    common = _common(task, status, retention_s)
    if status == "failed":
        said = task.error.message if task.error else "it failed"
        return {**common, "error": sayable(error or {"code": _INTERNAL_ERROR, "message": said})}
    if status == "cancelled":
        return common
    # It is a result of that version in itself, and says so.
    return {**common, "result": {"resultType": "complete", **await of_ended(task)}}


def _common(task: "Task", status: str, retention_s: float) -> dict[str, Any]:
    record, now = task.record, clock.now()
    changed = [record.started_at, record.parked_at, record.ready_at, record.finished_at]
    if record.question is not None:
        changed.append(record.question.asked_at)
    said = _standing(task)
    # It is kept for this long after its end, and is never forgotten before that.
    kept_from = record.finished_at or now
    lived_ms = max(0, (kept_from - record.created_at) // 1_000)
    return {
        "taskId": task.id,
        "status": status,
        **({"statusMessage": sayable(said)} if said else {}),
        "createdAt": rfc3339(record.created_at),
        "lastUpdatedAt": rfc3339(max([record.created_at, *(at for at in changed if at)])),
        "ttlMs": lived_ms + round(retention_s * 1_000),
        "pollIntervalMs": min(max(lived_ms // _POLL_SHARE, _POLL_FIRST_MS), _POLL_LAST_MS),
    }


def _standing(task: "Task") -> str:
    record = task.record
    if record.state.terminal:
        ending = Ending(record.state, record.error, record.exit_code, record.summary)
        return f"{record.title} {how_it_ended(ending)}"
    if record.question is not None:
        return f"{record.title} asks: {record.question.text}"
    progress = record.progress
    if progress is None:
        return record.detail or ""
    total = "" if progress.total is None else f"/{progress.total:g}"
    counted = f"{progress.current:g}{total} {progress.unit or ''}".rstrip()
    said = progress.label or record.detail
    return f"{counted}: {said}" if said else counted
