"""How a task or a schedule stands: a line for a model, and the same as data."""

import json
from typing import TYPE_CHECKING, Any

from backburner.model import clock
from backburner.model.clock import format_duration
from backburner.model.ending import Ending
from backburner.model.policy import Action
from backburner.model.telling import how_it_ended, waiting

if TYPE_CHECKING:
    from backburner.app import Schedule, Task

RESULT_CHARS = 4_000
"""Of a result in a text, about 1,000 tokens; the data has it whole."""


def standing(task: "Task") -> str:
    """A line: which one, and how it stands."""
    record = task.record
    took = format_duration(record.elapsed_us(clock.now()) / clock.SECOND)
    if record.state.terminal:
        ending = Ending(record.state, record.error, record.exit_code, record.summary)
        return f"{task.id} ({record.title}) {how_it_ended(ending)} after {took}"
    if record.question is not None:
        return f"{task.id} ({record.title}) asks: {record.question.text}"
    state = record.state.value
    said = record.detail if record.wait is None else waiting(record.wait)
    detail = f": {said}" if said else ""
    progress = ""
    if record.progress is not None:
        total = "" if record.progress.total is None else f"/{record.progress.total:g}"
        progress = f" {record.progress.current:g}{total} {record.progress.unit or ''}".rstrip()
    return f"{task.id} ({record.title}) {state} for {took}{progress}{detail}"


def played(handle: "Task | Schedule", action: Action) -> str | None:
    """What a dry run has to say of it; None where it was done."""
    return handle.record.detail if handle.policy.plays(action) else None


def result_of(task: "Task") -> str:
    """What it gave back, cut where it is long; nothing where it gave nothing."""
    if task.result is None:
        return ""
    text = (
        task.result if isinstance(task.result, str) else json.dumps(task.result, ensure_ascii=False)
    )
    short = text if len(text) <= RESULT_CHARS else text[:RESULT_CHARS] + "…"
    return f"result: {short}"


def planned(schedule: "Schedule") -> str:
    """A line: which one, when it fires, and what is to be known of it."""
    document = schedule.document()
    when = document["cron_expression"] or document["scheduled_at"]
    following = document["next_trigger_at"] or "never"
    line = f"{schedule.id} ({document['title']}) {schedule.state}: {when}, next {following}"
    detail = schedule.record.detail
    return f"{line}; {detail}" if detail else line


def data_of(task: "Task") -> dict[str, Any]:
    """The part of a task that a program needs to go on."""
    document = task.document()
    kept = ("id", "kind", "title", "state", "detail", "progress", "exit_code", "error", "summary")
    return {name: document[name] for name in (*kept, "result", "created_at", "finished_at")}
