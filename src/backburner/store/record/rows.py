"""Between rows and values: the one place that knows the order of the columns."""

import json
from collections.abc import Callable
from typing import Any

from backburner.model.channels import Channel, ChannelKind
from backburner.model.ending import TaskError
from backburner.model.events import Event, EventKind
from backburner.model.messages import Message
from backburner.model.order import OwnerLimit, Queue, Wait
from backburner.model.questions import Question
from backburner.model.signals import Signal, SignalKind, SignalState
from backburner.model.states import ErrorKind, Kind, State
from backburner.model.task import EndedFor, Place, Progress, StopRequest, StoredArtifacts, Task

_COLUMNS = [
    "seq",
    "id",
    "owner",
    "session",
    "kind",
    "title",
    "spec",
    "state",
    "attempt",
    "created_at",
    "started_at",
    "finished_at",
    "max_runtime_s",
    "detail",
    "progress",
    "ready_at",
    "parked_at",
    "exit_code",
    "error_kind",
    "error_message",
    "summary",
    "result",
    "boot_id",
    "started_boot",
    "pid",
    "cgroup",
    "stop_at",
    "stop_grace_s",
    "ended_for",
    "output_bytes",
    "dropped_bytes",
    "leftovers",
    "parent",
    "schedule",
    "hand_over",
    "queue",
    "after",
    "after_failure",
    "retries_left",
    "failures",
    "not_before",
    "memory_cgroup",
    "reported",
    "worker",
    "usage",
    "priority",
]

JOINED_TASK = ", ".join(
    [
        *(f"t.{name}" for name in _COLUMNS),
        "s.state",
        "s.delivered_at",
        "{open_question}",
        "{artifacts}",
    ]
)
"""For a SELECT that joins the signal of the end as `s`; what is left open is for queries.py."""

LIGHT_TASK = JOINED_TASK.replace("t.result,", "NULL,")
"""The same without results, each of which may be a megabyte, for an answer of many."""

TASK_COLUMNS = ", ".join(f"t.{name}" for name in _COLUMNS)
"""The columns of the table alone, for a SELECT from `t`."""

CHANGED_TASK = ", ".join([*_COLUMNS, "NULL", "NULL", "NULL", "NULL"])
"""For a RETURNING, which cannot join, and for a SELECT that does not."""


SIGNAL = """s.seq, s.key, t.id, s.owner, s.session, s.kind, s.text, s.data, s.state, s.reason,
    s.channel, s.tries, s.created_at, s.delivered_at, s.retry_at"""
"""For a SELECT that joins the signal `s` with its task `t`."""


QUESTION = """t.id, q.id, q.text, q.asked_at, q.answer, q.answered_at, q.withdrawn, q.attempt,
    q.schema, q.asker"""
"""For a SELECT that joins the question `q` with its task `t`."""


MESSAGE = "t.id, m.number, m.text, m.sent_at, coalesce(m.taken, t.attempt)"
"""For a SELECT that joins the message `m` with its task `t`."""


def _encoder() -> Callable[[Any], str]:
    """An encoder that is made once: the library makes one for each call, which takes longer than

    to encode what is short. One that contains itself is a RecursionError.
    """
    plain = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    quoted = json.encoder.encode_basestring
    pieces = make(None, plain.default, quoted, None, ":", ",", False, False, False)
    return lambda value: "".join(pieces(value, 0))


_encode = _encoder()


def to_json(value: Any) -> str:
    """Compact JSON; anything that is no JSON is an error of the caller."""
    return _encode(value)


def readable(text: str) -> str:
    """A text for people and models, as every record gives it: halves of surrogate pairs escaped.

    Python makes them of bytes that are no UTF-8, as in a file name. Escaped, they come back as they
    were from JSON, and are something that can be read and sent elsewhere.
    """
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def from_database(text: str) -> Any:
    """JSON that a database has made, which does not know what a text stands for: not strict."""
    return json.loads(text, strict=False)


def to_task(row: tuple[Any, ...]) -> Task:
    """A row of JOINED_TASK or CHANGED_TASK as a task."""
    (
        seq, task_id, owner, session, kind, title, spec, state, attempt,
        created_at, started_at, finished_at, max_runtime_s, detail, progress, ready_at,
        parked_at, exit_code, error_kind, error_message, summary, result, boot_id,
        started_boot, pid, cgroup, stop_at, stop_grace_s, ended_for, output_bytes, dropped_bytes,
        leftovers, parent, schedule, hand_over, queue, after, after_failure, retries_left,
        failures, not_before, memory_cgroup, reported, worker, usage,
        priority, signal_state, signal_delivered_at, question, artifacts,
    ) = row  # fmt: skip
    return Task(
        seq=seq,
        id=task_id,
        owner=owner,
        session=session,
        kind=Kind(kind),
        title=readable(title),
        spec=json.loads(spec),
        state=State(state),
        attempt=attempt,
        created_at=created_at,
        started_at=started_at,
        finished_at=finished_at,
        max_runtime_s=max_runtime_s,
        detail=detail and readable(detail),
        progress=Progress(**json.loads(progress)) if progress else None,
        ready_at=ready_at,
        parked_at=parked_at,
        exit_code=exit_code,
        error=TaskError(ErrorKind(error_kind), readable(error_message)) if error_kind else None,
        summary=summary and readable(summary),
        result=json.loads(result) if result else None,
        place=Place(boot_id, started_boot, pid, cgroup, memory_cgroup, worker) if boot_id else None,
        stop=StopRequest(stop_at, stop_grace_s) if stop_at is not None else None,
        ended_for=EndedFor(ended_for) if ended_for else None,
        output_bytes=output_bytes,
        dropped_bytes=dropped_bytes,
        leftovers=leftovers,
        parent=parent,
        schedule=schedule,
        hand_over=hand_over,
        queue=queue,
        after=tuple(json.loads(after)) if after else (),
        after_failure=bool(after_failure),
        retries_left=retries_left,
        failures=failures,
        not_before=not_before,
        priority=priority,
        reported=reported,
        usage=json.loads(usage) if usage else None,
        signal_state=SignalState(signal_state) if signal_state else None,
        signal_delivered_at=signal_delivered_at,
        question=_open_question(task_id, attempt, question) if question else None,
        artifacts=StoredArtifacts(**json.loads(artifacts)) if artifacts else None,
    )


def _open_question(task_id: str, attempt: int, question: str) -> Question:
    asked: dict[str, Any] = from_database(question)
    asked["text"] = readable(asked["text"])
    return Question(task_id, **asked, attempt=attempt)


def to_question(row: tuple[Any, ...]) -> Question:
    """A row of QUESTION as a question."""
    (
        task, question_id, text, asked_at, answer, answered_at, withdrawn, attempt, schema, asker,
    ) = row  # fmt: skip
    fitting = json.loads(schema) if schema else None
    return Question(
        task, question_id, readable(text), asked_at, answer, answered_at, bool(withdrawn), attempt,
        fitting, asker,
    )  # fmt: skip


def to_message(row: tuple[Any, ...]) -> Message:
    """A row of MESSAGE as a message."""
    return Message(*row)


def to_queue(row: tuple[Any, ...]) -> Queue:
    """A row of a queues query as a queue."""
    name, width, paused, waiting, running = row
    return Queue(name, width, paused=bool(paused), waiting=waiting, running=running)


def to_owner_limit(row: tuple[Any, ...]) -> OwnerLimit:
    """A row of an owner_limits query as a limit."""
    owner, limit, running, waiting = row
    return OwnerLimit(owner or None, limit, running, waiting)


def to_wait(row: tuple[Any, ...]) -> tuple[str, Wait]:
    """A row of a waits query: whose it is, and the wait."""
    task, others, due, queue, paused, place, owner_limit = row
    after = tuple(json.loads(others))
    return task, Wait(after, due, queue, bool(paused), place, owner_limit)


def to_channel(row: tuple[Any, ...]) -> Channel:
    """A row of a channels query as a channel."""
    owner, name, session, kind, target, kinds, allow_private, secret, paused = row
    wanted = None if kinds is None else frozenset(map(SignalKind, json.loads(kinds)))
    return Channel(
        name,
        owner,
        session,
        ChannelKind(kind),
        target,
        wanted,
        allow_private=bool(allow_private),
        secret=secret,
        paused=paused,
    )


def to_event(row: tuple[Any, ...]) -> Event:
    """A row of an events query as an event."""
    seq, task, number, at, kind, data = row
    return Event(seq, task, number, at, EventKind(kind), json.loads(data))


def to_signal(row: tuple[Any, ...]) -> Signal:
    """A row of a signals query as a signal."""
    (
        seq, key, task, owner, session, kind, text, data, state, reason, channel, tries,
        created_at, delivered_at, retry_at,
    ) = row  # fmt: skip
    return Signal(
        seq, key, task, owner, session, SignalKind(kind), readable(text), json.loads(data),
        SignalState(state), reason and readable(reason), channel, tries,
        created_at, delivered_at, retry_at,
    )  # fmt: skip
