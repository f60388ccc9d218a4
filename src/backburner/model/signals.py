"""Signals: what a session is told about a task, once."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from backburner.model.clock import Instant
from backburner.model.errors import UsageError
from backburner.model.states import State
from backburner.model.values import value


class SignalKind(StrEnum):
    """What the session is told."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    INPUT_REQUIRED = "input_required"
    READY = "ready"
    MATCH = "match"
    SILENT = "silent"
    MESSAGE = "message"
    """What the task itself says while it goes on."""


def to_kinds(given: Iterable[str]) -> frozenset[SignalKind]:
    """Kinds by name; one that there is not is a usage error that names those that there are."""
    names = list(given)
    known = [kind.value for kind in SignalKind]
    for name in names:
        if name not in known:
            raise UsageError(
                f"{name!r} is no kind of signal", remedy=f"choose from {', '.join(known)}"
            )
    return frozenset(map(SignalKind, names))


class SignalState(StrEnum):
    """How far the telling is."""

    PENDING = "pending"
    """Waits for a consumer."""
    CLAIMED = "claimed"
    """A consumer has it and has not acknowledged it yet."""
    DELIVERED = "delivered"
    """Acknowledged. Final."""
    FAILED = "failed"
    """A delivery failed; it is tried again later."""
    DROPPED = "dropped"
    """It will not be delivered, and the reason says why. Final."""


OPEN = (SignalState.PENDING, SignalState.CLAIMED, SignalState.FAILED)
"""Not told yet, and to be."""

END_SIGNALS: dict[State, SignalKind] = {
    State.SUCCEEDED: SignalKind.COMPLETED,
    State.FAILED: SignalKind.FAILED,
    State.CANCELED: SignalKind.CANCELED,
}

INBOX = "inbox"
"""The channel that is always there: consumers pull."""

GIVEN_UP = "given up after"
"""How the reason of a dead letter begins."""

NOTIFY = "notify"
"""The channel of a task that asks for notifications on the screen, for itself alone."""


def end_key(task_id: str) -> str:
    """The idempotency key of the one signal that tells of a task's end."""
    return f"{task_id}:end"


def ask_key(task_id: str, attempt: int, question: str) -> str:
    """The idempotency key of the signal that tells of a question."""
    return f"{task_id}:ask:{attempt}:{question}"


def tell_key(task_id: str, attempt: int, which: str) -> str:
    """The idempotency key of something that a task tells; ``which`` is its own among those."""
    return f"{task_id}:tell:{attempt}:{which}"


def activity_key(task_id: str, number: int | None = None) -> str:
    """The idempotency key of the signal that tells of a status, by the number of its event.

    Without a number, what all of a task begin with.
    """
    return f"{task_id}:activity:{'' if number is None else number}"


@value
class NewSignal:
    """What is to be told beside the end: ready, a match, silence."""

    kind: SignalKind
    key: str
    """Unique: the same key again is not told again."""
    text: str
    data: dict[str, Any]


@value
class Signal:
    """One row of what a session was told, or is to be told."""

    seq: int
    key: str
    task: str
    owner: str
    session: str
    kind: SignalKind
    text: str
    data: dict[str, Any]
    state: SignalState
    reason: str | None
    channel: str
    tries: int
    created_at: Instant
    delivered_at: Instant | None
    retry_at: Instant | None = None
    """Of one that failed: when it is tried again."""

    @property
    def id(self) -> str:
        """The name of the signal for the outside."""
        return f"sg_{self.seq}"
