"""The ends of tasks, many at once: each with its event and its signal, in one transaction."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from backburner.model.clock import Instant
from backburner.model.ending import Ending, TaskError
from backburner.model.errors import StoreError
from backburner.model.events import EventKind
from backburner.model.signals import END_SIGNALS, NewSignal, SignalState, activity_key, end_key
from backburner.model.states import State, sources
from backburner.model.task import Task
from backburner.model.telling import end_text
from backburner.model.values import changed, value
from backburner.model.wake import IF_PARKED, Wake, wake_of
from backburner.store.protocol import Output
from backburner.store.record.rows import readable, to_json, to_task
from backburner.store.record.together import Together
from backburner.store.record.transaction import Row, Statements, ending_data, telling

_SOURCES = {state: sources(state) for state in State}
_UNBEGUN = {end: tuple(state for state in _SOURCES[end] if state is State.QUEUED) for end in State}

AT_ITS_START = 2
"""So many events a task has that was made and has started, and to which nothing else happened."""


@value
class End:
    """How an attempt ended, as `Store.finish` is told."""

    task: str
    attempt: int
    ending: Ending
    output: Output | None = None
    leftovers: int = 0
    usage: Mapping[str, int] | None = None
    begun: Task | None = None
    """As it was when it began, where whoever ends it knows: to read it again takes a third of what
    an end does, and most have not changed."""
    unbegun: bool = False
    """Only where it has not begun; and is with ``node``, if there are many."""
    node: str | None = None


def end_task(run: Statements, end: End) -> Task | None:
    """The end of one."""
    (ended,) = end_tasks(run, [end])
    return ended


def end_tasks(run: Statements, ends: Sequence[End]) -> list[Task | None]:
    """Each from an active state → its ending; None where that attempt is not active any more.

    No task twice.
    """
    now = run.now()
    wanted = [
        [
            end.task,
            end.attempt,
            (_UNBEGUN if end.unbegun else _SOURCES)[end.ending.state],
            end.begun and AT_ITS_START,
            end.node,
        ]
        for end in ends
    ]
    of_owner: dict[str, list[_MayEnd]] = {}
    for found in run.found("tasks_to_end", wanted=wanted):
        place: int = found[0]
        end = ends[place]
        if read := found[1:]:
            asked, events, *row = read
            before = to_task((*row, None, None, None, None))
        else:
            assert end.begun is not None
            asked, events, before = False, AT_ITS_START, end.begun
        task, columns = _ended(before, end, now)
        of_owner.setdefault(task.owner, []).append(
            _MayEnd(place, task, columns, asked=bool(asked), events=events)
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
    columns: Row
    """What is written; in the order of `tasks_end`."""
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
        rows.append(each.columns)
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


def _ended(task: Task, end: End, now: Instant) -> tuple[Task, Row]:
    """The task with its end, and what of that is written; a result, counts or sizes that were noted

    before stay. A clock that was set back ends none before its start.
    """
    ending, error, output = end.ending, end.ending.error, end.output
    at = max(now, task.created_at, task.started_at or 0)
    message = readable(error.message) if error else None
    summary = ending.summary and readable(ending.summary)
    result = None if ending.result is None else readable(to_json(ending.result))
    usage = None if end.usage is None else readable(to_json(dict(end.usage)))
    total, dropped = (output.total, output.dropped) if output else (None, None)
    kind = error.kind if error else None
    columns = (
        task.seq, ending.state, at, ending.exit_code, kind, message, summary, result, usage,
        end.leftovers, total, dropped,
    )  # fmt: skip
    ended = changed(
        task,
        state=ending.state,
        finished_at=at,
        exit_code=ending.exit_code,
        error=TaskError(kind, message) if kind and message is not None else None,
        summary=summary,
        result=task.result if result is None else json.loads(result),
        usage=task.usage if usage is None else json.loads(usage),
        leftovers=end.leftovers,
        output_bytes=task.output_bytes if total is None else total,
        dropped_bytes=task.dropped_bytes if dropped is None else dropped,
        signal_state=SignalState.PENDING,
    )
    return ended, columns


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
