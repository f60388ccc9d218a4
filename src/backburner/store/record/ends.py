"""The ends of tasks, many at once: each with its event and its signal, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.ending import Ending
from backburner.model.errors import StoreError
from backburner.model.events import EventKind
from backburner.model.signals import END_SIGNALS, NewSignal, SignalState, activity_key, end_key
from backburner.model.states import State, sources
from backburner.model.task import Task
from backburner.model.telling import end_text
from backburner.model.values import value
from backburner.model.wake import IF_PARKED, Wake, wake_of
from backburner.store.protocol import Output
from backburner.store.record.rows import (
    change_row,
    ending_columns,
    to_json,
    to_task,
)
from backburner.store.record.together import Together
from backburner.store.record.transaction import Statements, ending_data, telling

_SOURCES = {state: sources(state) for state in State}


@value
class End:
    """How an attempt ended, as `Store.finish` is told."""

    task: str
    attempt: int
    ending: Ending
    output: Output | None = None
    leftovers: int = 0
    usage: Mapping[str, int] | None = None


def end_task(run: Statements, end: End) -> Task | None:
    """The end of one."""
    (ended,) = end_tasks(run, [end])
    return ended


def end_tasks(run: Statements, ends: Sequence[End]) -> list[Task | None]:
    """Each from an active state → its ending; None where that attempt is not active any more.

    No task twice.
    """
    now = clock.now()
    wanted = [[end.task, end.attempt, _SOURCES[end.ending.state]] for end in ends]
    found = run.found("tasks_to_end", now=now, wanted=wanted)
    if not found:
        return [None] * len(ends)
    of_owner: dict[str, list[_MayEnd]] = {}
    for may_end in found:
        place: int = may_end[0]
        asked, count, finished_at, *row = may_end[1:]
        change_row(row, finished_at=finished_at, **_changes(run, ends[place]))
        task = to_task((*row, SignalState.PENDING, None, None, None))
        of_owner.setdefault(task.owner, []).append(
            _MayEnd(place, task, row, asked=bool(asked), events=count)
        )
    ended: dict[int, Task] = {}
    for owner, theirs in of_owner.items():
        with run.acting_for(owner):
            ended |= _end_of_owner(run, theirs, ends, now)
    return [ended.get(place) for place in range(len(ends))]


@value
class _MayEnd:
    """A task as it is when it has ended; its place among the ends."""

    place: int
    task: Task
    row: Sequence[Any]
    asked: bool
    events: int


def _end_of_owner(
    run: Statements, theirs: Sequence[_MayEnd], ends: Sequence[End], now: Instant
) -> dict[int, Task]:
    """Write them down; each by its place."""
    rows: list[Sequence[Any]] = []
    events: list[Sequence[Any]] = []
    signals: list[Sequence[Any]] = []
    for each in theirs:
        end, task = ends[each.place], each.task
        rows.append(ending_columns(each.row))
        data = ending_data(end.ending, end.leftovers)
        events.append((task.seq, each.events + 1, now, EventKind.FINISHED, to_json(data)))
        run.happens(task.id, EventKind.FINISHED)
        if each.asked:
            run.rows("signals_of_ended_questions", task=task.seq)
        signal = _signal(run, task, end.ending, data)
        if signal is not None:
            assert task.finished_at is not None
            signals.append(telling(task, signal, task.finished_at))
    run.many("tasks_end", rows=rows)
    run.many("events_insert", rows=events)
    states = run.tell_all(signals)
    if len(states) != len(signals):
        raise StoreError("an end was told before")
    return {each.place: _told(each.task, states.get(end_key(each.task.id))) for each in theirs}


def _told(task: Task, state: SignalState | None) -> Task:
    return task if state is task.signal_state else replace(task, signal_state=state)


ENDS = Together(end_tasks, subject=lambda end: end.task, turn=0)


def _changes(run: Statements, end: End) -> dict[str, Any]:
    """What an end writes; a result, counts or sizes that were noted before stay."""
    ending, error = end.ending, end.ending.error
    changes: dict[str, Any] = {
        "state": ending.state,
        "exit_code": ending.exit_code,
        "error_kind": error.kind if error else None,
        "error_message": run.kept(error.message) if error else None,
        "summary": ending.summary and run.kept(ending.summary),
        "leftovers": end.leftovers,
    }
    if ending.result is not None:
        changes["result"] = run.kept(to_json(ending.result))
    if end.usage is not None:
        changes["usage"] = run.kept(to_json(dict(end.usage)))
    if end.output is not None:
        changes["output_bytes"] = end.output.total
        changes["dropped_bytes"] = end.output.dropped
    return changes


def _signal(run: Statements, task: Task, ending: Ending, data: dict[str, Any]) -> NewSignal | None:
    """What the session is told of it, where it is to be told."""
    wake = wake_of(task.spec)
    if wake is Wake.SILENT or (task.spec.get(IF_PARKED) and task.parked_at is None):
        return None
    if wake is Wake.ON_ACTIVITY:
        run.rows("activity_is_over", task=task.seq, prefix=activity_key(task.id))
    tool = task.spec.get("tool")
    told = {"title": task.title, "tool": tool, "attempt": task.attempt, **data}
    if tool is None:
        del told["tool"]
    text = end_text(task.title, task.id, ending, task.elapsed_us(0))
    return NewSignal(END_SIGNALS[ending.state], end_key(task.id), text, told)
