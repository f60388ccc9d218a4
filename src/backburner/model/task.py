"""The task: one piece of background work, as the store keeps it."""

from enum import StrEnum
from typing import Any

from backburner.model import ids
from backburner.model.clock import Instant
from backburner.model.ending import TaskError
from backburner.model.errors import UsageError
from backburner.model.limits import LONGEST_RUNTIME_S, PREVIEW_MAX_CHARS
from backburner.model.order import ANY_TIME, Order, Wait
from backburner.model.questions import Question
from backburner.model.signals import SignalState
from backburner.model.states import Kind, State
from backburner.model.values import value


@value
class Progress:
    """How far a task says it is."""

    current: float
    total: float | None = None
    unit: str | None = None
    label: str | None = None


@value
class StopRequest:
    """Someone asked for the end of a task."""

    at: Instant
    grace_s: float
    """Between TERM and KILL; 0 is a forced stop."""


class EndedFor(StrEnum):
    """Why the worker has begun to end a task. On disk before the first signal is sent: whoever
    comes after a worker that died in the middle knows that the end is not the task's own."""

    STOP = "stop"
    """Somebody asked for it."""
    TIMEOUT = "timeout"
    """It passed its maximum run time."""


@value
class Place:
    """Where an attempt runs: enough to find the process again, and never to mistake it."""

    boot_id: str
    """A process of an earlier boot cannot be alive, whatever its pid says."""
    started_boot: int
    """Boot time of the start: run time is measured with this, because wall time can be set."""
    pid: int | None = None
    cgroup: str | None = None
    memory_cgroup: str | None = None
    """The one that limits its memory, where one does."""
    worker: str | None = None
    """The application that carries it out in itself; None for processes that the keeper starts."""


@value
class StoredArtifacts:
    """The files that an attempt on some machine has added, as a shared record lists them."""

    attempt: int
    place: str
    """The address where all machines read them; empty where they stay on the one."""
    folder: str
    """Below that address; else on that machine."""
    sizes: dict[str, int]
    """In bytes, by name."""


@value
class NewTask:
    """What is written when a task is created."""

    id: str
    owner: str
    session: str
    kind: Kind
    title: str
    spec: dict[str, Any]
    max_runtime_s: float | None = None
    parent: str | None = None
    schedule: str | None = None
    hand_over: str | None = None
    order: Order = ANY_TIME


@value
class Task:
    """One row of the record."""

    seq: int
    id: str
    owner: str
    session: str
    kind: Kind
    title: str
    spec: dict[str, Any]
    state: State
    attempt: int
    created_at: Instant
    started_at: Instant | None = None
    finished_at: Instant | None = None
    max_runtime_s: float | None = None
    detail: str | None = None
    progress: Progress | None = None
    ready_at: Instant | None = None
    parked_at: Instant | None = None
    exit_code: int | None = None
    error: TaskError | None = None
    summary: str | None = None
    result: Any = None
    place: Place | None = None
    stop: StopRequest | None = None
    ended_for: EndedFor | None = None
    output_bytes: int = 0
    dropped_bytes: int = 0
    leftovers: int = 0
    """Processes that the task left behind when it ended."""
    parent: str | None = None
    schedule: str | None = None
    hand_over: str | None = None
    """Names what this very start has left for the worker: another start of the same id, which
    will be refused, cannot put its own in the place."""
    queue: str | None = None
    after: tuple[str, ...] = ()
    after_failure: bool = False
    retries_left: int = 0
    failures: int = 0
    """Attempts that have failed."""
    not_before: Instant | None = None
    """A further attempt waits for this time."""
    priority: int = 0
    wait: Wait | None = None
    """What keeps it from starting, as of the look at the record that it comes from."""
    reported: int = 0
    """How many bytes of the job's own report are in the record."""
    usage: dict[str, int] | None = None
    """What a model has used for it."""
    question: Question | None = None
    """The oldest one that is open, where it waits for an answer."""
    signal_state: SignalState | None = None
    """What became of the signal that tells of the end."""
    signal_delivered_at: Instant | None = None
    artifacts: StoredArtifacts | None = None
    """In a shared record, where its files are; those of a home lie in it."""

    @property
    def pid(self) -> int | None:
        """The process that carries it out, or did."""
        return self.place.pid if self.place else None

    def elapsed_us(self, now: Instant) -> int:
        """Run time so far, or in all; never negative, also when the clock was set back."""
        if self.started_at is None:
            return 0
        return max(0, (self.finished_at or now) - self.started_at)


def preview(text: str, limit: int = PREVIEW_MAX_CHARS) -> str:
    """The first line of ``text`` within ``limit`` characters, an ellipsis where it was cut."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def check_title(title: object) -> None:
    """UsageError where it is no text. None stands for one that is made up from the work."""
    if title is not None and not isinstance(title, str):
        raise UsageError("a title is a text", remedy="leave it out for one from the work itself")


def check_start(task_id: str | None, max_runtime_s: float | None) -> None:
    """UsageError where a start cannot have this id, or this maximum run time; None is one made up

    here, and no limit.
    """
    if task_id is not None and not ids.is_valid(task_id):
        raise UsageError(
            f"{task_id!r} cannot be an id",
            remedy="use letters, digits, - and _, at most 64, a letter or digit first",
        )
    if max_runtime_s is not None and not 0 < max_runtime_s <= LONGEST_RUNTIME_S:
        raise UsageError(
            "the maximum run time must be more than 0, and less than 100 years",
            remedy="use None for no limit",
        )
