"""A task, an event and a signal as JSON: exactly the fields of the contract, times in RFC 3339."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from backburner.model.allowance import Allowance
from backburner.model.clock import SECOND
from backburner.model.document import Artifact, event_document, signal_document, task_document
from backburner.model.ending import TaskError
from backburner.model.events import Event, EventKind
from backburner.model.home import Home
from backburner.model.questions import Question
from backburner.model.signals import Signal, SignalKind, SignalState
from backburner.model.states import ErrorKind, Kind, State
from backburner.model.task import Place, Progress, StopRequest, Task

HOME = Home(Path("/home/ada/.local/state/backburner"))
NOON = 1_794_744_000 * SECOND  # 2026-11-15T12:00:00Z

# Copied from contract.md, "A task as JSON".
TASK_FIELDS = """id, session, owner, kind, title, state, detail,
progress {current,total,unit,label}, ready_at, parked_at, exit_code, error {kind,message}, summary,
result, attempt, pid, created_at, started_at, finished_at, max_runtime_s,
output {bytes, dropped_bytes, cursor}, paths {dir, log, result}, leftovers,
signal {state, delivered_at}, links {parent, schedule}"""

# What was added since; adding is free.
ADDED_FIELDS = ["order", "wait", "allowance", "question", "artifacts", "usage"]

# Copied from contract.md, "A signal as JSON".
SIGNAL_FIELDS = """id, key, task, session, kind, text, data, state, reason, channel, tries,
created_at, delivered_at, retry_at"""

QUEUED = Task(
    seq=1,
    id="bg_1",
    owner="ada",
    session="chat",
    kind=Kind.SHELL,
    title="tests",
    spec={"command": "pytest"},
    state=State.QUEUED,
    attempt=1,
    created_at=NOON,
)
FULL = replace(
    QUEUED,
    state=State.FAILED,
    attempt=2,
    started_at=NOON + SECOND,
    finished_at=NOON + 2 * SECOND,
    max_runtime_s=60.0,
    detail="compiling",
    progress=Progress(3, 9, "files", "main.c"),
    ready_at=NOON + SECOND,
    parked_at=NOON + SECOND,
    exit_code=3,
    error=TaskError(ErrorKind.EXIT, "exit code 3"),
    summary="3 of 9",
    result={"n": 3},
    place=Place("boot", 5, 4711, "/sys/fs/cgroup/x"),
    stop=StopRequest(NOON, 5.0),
    output_bytes=10,
    dropped_bytes=4,
    leftovers=2,
    parent="bg_0",
    schedule="sc_1",
    signal_state=SignalState.DELIVERED,
    signal_delivered_at=NOON + 3 * SECOND,
)
SIGNAL = Signal(
    7, "bg_1:end", "bg_1", "ada", "chat", SignalKind.FAILED, "tests failed", {"exit_code": 3},
    SignalState.DELIVERED, None, "inbox", 2, NOON, NOON + SECOND,
)  # fmt: skip


def fields_of(text: str) -> dict[str, list[str] | None]:
    """`a, b {x, y}` as {a: None, b: [x, y]}."""
    return {
        name: [inner.strip() for inner in inside.split(",")] if inside else None
        for name, inside in re.findall(r"(\w+)(?: \{([^}]*)\})?(?:,|$)", text.replace("\n", " "))
    }


def document_of(task: Task) -> dict[str, Any]:
    return task_document(task, HOME, output_bytes=10, dropped_bytes=4, cursor="c1")


@pytest.mark.parametrize("task", [QUEUED, FULL], ids=["queued", "ended"])
def test_a_task_has_exactly_the_fields_of_the_contract_in_its_order(task: Task) -> None:
    assert list(document_of(task)) == [*fields_of(TASK_FIELDS), *ADDED_FIELDS]


def test_the_parts_of_a_task_have_exactly_the_fields_of_the_contract() -> None:
    document = document_of(replace(FULL, result="a text"))
    for name, inner in fields_of(TASK_FIELDS).items():
        assert isinstance(document[name], dict) is (inner is not None)
        assert inner is None or list(document[name]) == inner


def test_a_task_that_has_ended_as_json() -> None:
    assert document_of(FULL) == {
        "id": "bg_1",
        "session": "chat",
        "owner": "ada",
        "kind": "shell",
        "title": "tests",
        "state": "failed",
        "detail": "compiling",
        "progress": {"current": 3, "total": 9, "unit": "files", "label": "main.c"},
        "ready_at": "2026-11-15T12:00:01.000000Z",
        "parked_at": "2026-11-15T12:00:01.000000Z",
        "exit_code": 3,
        "error": {"kind": "exit", "message": "exit code 3"},
        "summary": "3 of 9",
        "result": {"n": 3},
        "attempt": 2,
        "pid": 4711,
        "created_at": "2026-11-15T12:00:00.000000Z",
        "started_at": "2026-11-15T12:00:01.000000Z",
        "finished_at": "2026-11-15T12:00:02.000000Z",
        "max_runtime_s": 60.0,
        "output": {"bytes": 10, "dropped_bytes": 4, "cursor": "c1"},
        "paths": {
            "dir": HOME.attempt("bg_1", 2).path,
            "log": HOME.attempt("bg_1", 2).log,
            "result": HOME.attempt("bg_1", 2).result,
        },
        "leftovers": 2,
        "signal": {"state": "delivered", "delivered_at": "2026-11-15T12:00:03.000000Z"},
        "links": {"parent": "bg_0", "schedule": "sc_1"},
        "order": {
            "queue": None,
            "after": [],
            "after_failure": False,
            "retries_left": 0,
            "failures": 0,
            "priority": 0,
        },
        "wait": None,
        "allowance": Allowance().document(),
        "question": None,
        "artifacts": [],
        "usage": None,
    }


def test_x5_a_task_that_asks_and_has_added_a_file_as_json() -> None:
    question = Question("bg_1", "q1", "Deploy?", NOON)
    document = task_document(
        replace(QUEUED, state=State.INPUT_REQUIRED, question=question),
        HOME,
        output_bytes=0,
        dropped_bytes=0,
        cursor="c1",
        artifacts=[Artifact("a.txt", 3, "/a.txt")],
    )
    assert document["question"] == {
        "id": "q1",
        "text": "Deploy?",
        "asked_at": "2026-11-15T12:00:00.000000Z",
        "answered_at": None,
        "withdrawn": False,
        "schema": None,
        "asker": None,
    }
    assert document["artifacts"] == [{"name": "a.txt", "bytes": 3, "path": "/a.txt"}]


def test_a_task_that_has_not_started_shows_nulls_and_no_specification() -> None:
    document = document_of(QUEUED)
    empty = {name for name, value in document.items() if value is None}
    assert empty == {
        *("detail", "progress", "ready_at", "parked_at", "exit_code", "error", "summary"),
        *("result", "pid", "started_at", "finished_at", "max_runtime_s", "signal"),
        *("wait", "question", "usage"),
    }
    assert document["links"] == {"parent": None, "schedule": None}
    assert "pytest" not in json.dumps(document)


def test_a_signal_has_exactly_the_fields_of_the_contract() -> None:
    assert list(signal_document(SIGNAL)) == list(fields_of(SIGNAL_FIELDS))
    assert signal_document(SIGNAL) == {
        "id": "sg_7",
        "key": "bg_1:end",
        "task": "bg_1",
        "session": "chat",
        "kind": "failed",
        "text": "tests failed",
        "data": {"exit_code": 3},
        "state": "delivered",
        "reason": None,
        "channel": "inbox",
        "tries": 2,
        "created_at": "2026-11-15T12:00:00.000000Z",
        "delivered_at": "2026-11-15T12:00:01.000000Z",
        "retry_at": None,
    }


def test_an_event_as_json() -> None:
    event = Event(9, "bg_1", 2, NOON, EventKind.STARTED, {"attempt": 1})
    assert event_document(event) == {
        "seq": 9,
        "task": "bg_1",
        "number": 2,
        "at": "2026-11-15T12:00:00.000000Z",
        "kind": "started",
        "data": {"attempt": 1},
    }


def test_every_document_is_json() -> None:
    for document in (document_of(FULL), document_of(QUEUED), signal_document(SIGNAL)):
        assert json.loads(json.dumps(document, allow_nan=False)) == document
