"""What must be true of every task at the end, whatever was done to it and to us."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from backburner import Event, EventKind, Kind, State, Task
from backburner.app.signal import Signal
from backburner.model.signals import END_SIGNALS, SignalState, end_key
from backburner.model.states import TRANSITIONS
from tests.runtime.machine.behaviours import ANSWER, MESSAGE, WELL
from tests.runtime.machine.grounds import Files
from tests.runtime.machine.known import Known

_INTO = {
    EventKind.CREATED: State.QUEUED,
    EventKind.STARTED: State.RUNNING,
    EventKind.REQUEUED: State.QUEUED,
    EventKind.FAILED_TRY: State.QUEUED,
    EventKind.ASKED: State.INPUT_REQUIRED,
    EventKind.ANSWERED: State.RUNNING,
    EventKind.WITHDRAWN: State.RUNNING,
}


def check_history(task: Task, events: Sequence[Event]) -> None:
    """E10: one way through the table of transitions, to one end."""
    seen = [(event.kind.value, event.data) for event in events]
    assert [event.number for event in events] == list(range(1, len(events) + 1)), seen
    assert events[0].kind is EventKind.CREATED, seen
    assert events[-1].kind is EventKind.FINISHED, seen
    state = State.QUEUED
    attempt = 1
    for event in events[1:]:
        assert not state.terminal, seen
        finished = event.kind is EventKind.FINISHED
        into = State(event.data["state"]) if finished else _INTO.get(event.kind, state)
        if into is not state:
            assert into in TRANSITIONS[state], seen
        state = into
        attempt += event.kind in (EventKind.REQUEUED, EventKind.FAILED_TRY)
    assert (state, attempt) == (task.state, task.record.attempt), seen


def check_end(known: Known, task: Task, *, sees_deaths: bool) -> None:
    """It ended as it may have ended, given what was done to it."""
    record = task.record
    error = record.error.kind if record.error else None
    assert (record.state, error) in known.ends(task, sees_deaths=sees_deaths), (known, record)
    assert known.stopped_as <= {record.state}, (known, record, "it changed after its stop")
    if (record.state, error) != WELL:
        return
    match known.behaviour.need, known.behaviour.kind:
        case "answer", Kind.TOOL:
            assert record.result == int(ANSWER), (known, record)
        case "message", _:
            assert record.result == MESSAGE, (known, record)
        case _, Kind.TOOL | Kind.PYTHON | Kind.AGENT:
            assert record.result == known.token, (known, record)
        case _:
            assert record.exit_code == 0, (known, record)


def check_runs(known: Known, task: Task, events: Sequence[Event], folder: Path) -> None:
    """E11, promise 5: it ran as often as it says, and not twice unless it may."""
    mark = folder / f"ran-{known.token}"
    runs = len(mark.read_text().splitlines()) if mark.exists() else 0
    starts = sum(event.kind is EventKind.STARTED for event in events)
    seen = (known, task.record, runs, starts)
    assert runs <= starts, seen
    assert runs <= known.behaviour.most_runs, seen
    if task.state is State.SUCCEEDED:
        assert runs >= known.behaviour.runs, seen


def check_files(known: Known, task: Task, files: Files) -> None:
    """E4: the files that every end leaves, and what they say."""
    log, result_json = files
    record = task.record
    assert log is None or Path(log).exists(), (known, record, "there is no log")
    assert Path(result_json).exists(), (known, record, "there is no result.json")
    result = json.loads(Path(result_json).read_text())
    seen = (known, record, result)
    assert result["status"] == record.state, seen
    assert result["exit_code"] == record.exit_code, seen
    assert result.get("result") == record.result, seen
    if record.error is None:
        assert "error" not in result, seen
    else:
        assert result["error"]["kind"] == record.error.kind, seen
        # The record says beside it how often a task was tried.
        assert record.error.message.startswith(result["error"]["message"]), seen


def check_told(
    known: dict[str, Known], tasks: dict[str, Task], told: Sequence[Signal], *, deleted: bool
) -> None:
    """X1, E8: each end is told once, unless it is to be silent or its session was deleted."""
    keys = Counter(signal.key for signal in told)
    assert not [key for key, count in keys.items() if count > 1], keys
    ends = {signal.task: signal.record for signal in told if signal.key == end_key(signal.task)}
    loud = {task_id for task_id in tasks if known[task_id].wake != "silent"}
    assert set(ends) == loud, (set(ends) ^ loud, known)
    for task_id, signal in ends.items():
        assert signal.kind is END_SIGNALS[tasks[task_id].state], (known[task_id], signal)
        final = {SignalState.DELIVERED, *([SignalState.DROPPED] if deleted else [])}
        assert signal.state in final, (known[task_id], signal)
