"""What every store promises.

Each method is one transaction. A change of state is guarded by the states it may leave and by the
attempt, and writes its event and, where due, its signal in that same transaction; a guard that
does not hold changes nothing and answers None. When a method returns, the change is on disk.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from backburner.model.channels import Channel
from backburner.model.clock import Instant
from backburner.model.ending import Ending
from backburner.model.events import Event, EventKind
from backburner.model.order import Queue, Wait
from backburner.model.questions import Question
from backburner.model.signals import NewSignal, Signal, SignalKind, SignalState
from backburner.model.states import Kind, State
from backburner.model.task import EndedFor, NewTask, Place, Progress, Task


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose tasks: what lies outside does not exist for the caller."""

    owner: str
    session: str | None = None
    """None means every session of the owner."""


@dataclass(frozen=True, slots=True)
class Output:
    """How much a task has written, and how much of that was dropped."""

    total: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """A result that a job has given; None is one, too."""

    value: Any


@dataclass(frozen=True, slots=True)
class Facts:
    """What was noticed about a task, beside its state. What is None stays as it is."""

    detail: str | None = None
    progress: Progress | None = None
    leftovers: int | None = None
    output: Output | None = None
    result: Result | None = None
    reported: int | None = None
    """So many bytes of the job's own report are dealt with by this."""
    ready: bool = False
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else its event says."""
    signal: NewSignal | None = None
    """What the session is told of it."""


class Store(Protocol):
    """The durable record of tasks, events and signals."""

    # Tasks

    async def create(self, task: NewTask, *, limit: int, ending: Ending | None = None) -> Task:
        """Write a new task.

        The same id with the same specification in the same session gives the task that is there;
        anything else under that id is a Conflict. More than ``limit`` active tasks of its kind in
        its session: LimitReached. A queue that is not there: NotFound. With ``ending``, the task is
        created and ended at once.
        """
        ...

    async def get(self, task_id: str, scope: Scope | None = None) -> Task | None:
        """One task by its whole id."""
        ...

    async def find(self, prefix: str, scope: Scope, limit: int) -> list[Task]:
        """Tasks whose id starts with ``prefix``."""
        ...

    async def newest(
        self,
        scope: Scope,
        *,
        limit: int,
        states: Sequence[State] = (),
        before: int | None = None,
    ) -> list[Task]:
        """Tasks, newest first; ``before`` is the `seq` to go on from."""
        ...

    async def active(self, kind: Kind | None = None) -> list[Task]:
        """Every task that has not ended or has left processes behind, oldest first."""
        ...

    async def waiting_for_worker(self, kind: Kind) -> list[Task]:
        """Tasks that a worker must act on: to be started, asked to stop, or to be failed because

        one that they come after did not succeed.

        Not those that wait for another task, for their time or for a place in their queue. So many
        at the most, and those that are to stop first.
        """
        ...

    async def any_active(self) -> bool:
        """Whether a task has not ended, or has left processes behind."""
        ...

    async def waits(self) -> dict[str, Wait]:
        """What keeps queued tasks from starting, by their ids; not those that only wait for a

        worker.
        """
        ...

    async def next_due(self, kind: Kind) -> Instant | None:
        """When the next further attempt is due."""
        ...

    # Changes of state

    async def claim(self, task_id: str, attempt: int, place: Place) -> Task | None:
        """queued → running: from now on this attempt is the caller's to carry out.

        None also where its queue is full or paused.
        """
        ...

    async def requeue(self, task_id: str, attempt: int, reason: str) -> Task | None:
        """running → queued with the next attempt; the old attempt is fenced off."""
        ...

    async def fail_try(
        self, task_id: str, attempt: int, ending: Ending, not_before: Instant
    ) -> Task | None:
        """running → queued: this attempt failed, and a further one is made at that time.

        None where no retries are left or someone asked for the end.
        """
        ...

    async def finish(
        self,
        task_id: str,
        attempt: int,
        ending: Ending,
        *,
        output: Output | None = None,
        leftovers: int = 0,
    ) -> Task | None:
        """Any active state → the ending; tells the session."""
        ...

    async def request_stop(self, task_id: str, scope: Scope, grace_s: float) -> Task | None:
        """Ask for the end. A queued task is canceled at once; one that has ended is unchanged,

        unless it left processes behind: then those are asked to end. None: there is no such task.
        """
        ...

    # Facts beside the state, guarded by the attempt

    async def begin_ending(self, task_id: str, attempt: int, reason: EndedFor) -> bool:
        """The worker is about to end it. False: it has ended, or that was begun before."""
        ...

    async def note(self, task_id: str, attempt: int, kind: EventKind, facts: Facts) -> bool:
        """Record what was noticed, and tell of it."""
        ...

    # Questions

    async def ask(
        self, task_id: str, attempt: int, question: str, text: str, *, reported: int | None = None
    ) -> bool:
        """running → input_required, and tell. False where it was asked before, or has ended."""
        ...

    async def answer(
        self, task_id: str, scope: Scope, answer: str, *, question: str | None = None
    ) -> str | None:
        """Answer a question, else the oldest that is open. Which one; None where none is open.

        The last one answered: input_required → running.
        """
        ...

    async def withdraw(
        self, task_id: str, attempt: int, question: str, *, reported: int | None = None
    ) -> bool:
        """Whoever asked waits no longer. False where it was not open."""
        ...

    async def questions(self, task_id: str) -> list[Question]:
        """The questions of the present attempt, oldest first."""
        ...

    async def answers(self) -> list[Question]:
        """Answers to running tasks that have not been handed on to their jobs."""
        ...

    async def handed_on(self, task_id: str, attempt: int, question: str) -> bool:
        """The answer has reached the job."""
        ...

    # Events

    async def events(self, task_id: str, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """The events of one task with a number above ``after``."""
        ...

    async def events_since(self, seq: int, *, limit: int = 1000) -> list[Event]:
        """The events of all tasks with a `seq` above this one."""
        ...

    async def last_event(self) -> int:
        """The highest `seq` of an event; 0 where there is none."""
        ...

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` in this event loop after changes, by any process; may be spurious.

        Answers a function that ends it.
        """
        ...

    @property
    def outdated(self) -> bool:
        """Whether a newer program has changed the shape of the record since it was opened: it is

        neither read nor written through this store any more.
        """
        ...

    # Signals

    async def signals(
        self,
        scope: Scope,
        *,
        states: Sequence[SignalState] = (),
        task: str | None = None,
        channel: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Signal]:
        """Signals with a `seq` above ``after``, oldest first; of one channel, or of all."""
        ...

    async def claim_signals(
        self, scope: Scope, *, consumer: str, limit: int, lease_s: float
    ) -> list[Signal]:
        """Take undelivered signals that nobody holds: they are the consumer's for the lease."""
        ...

    async def claim_deliveries(
        self, *, consumer: str, limit: int, lease_s: float, busy: Collection[str] = ()
    ) -> list[Signal]:
        """The same for what is to be pushed through channels, of everyone.

        One for each channel at most, and none for those that are ``busy``: first tries keep their
        order, and come before further ones.
        """
        ...

    async def release_deliveries(self) -> int:
        """Give back what anybody holds for channels: for one who knows that they are dead."""
        ...

    async def next_delivery(self, busy: Collection[str] = ()) -> int | None:
        """In boot time: when the next one can be claimed, 0 for now; None where nothing is open.

        What belongs to channels that are ``busy`` does not count.
        """
        ...

    async def resend(self, key: str, scope: Scope) -> bool:
        """Send one again that failed or was dropped.

        False where it is neither, its channel is gone or paused, or its question not open.
        """
        ...

    async def acknowledge(
        self, keys: Sequence[str], scope: Scope, *, consumer: str | None = None
    ) -> int:
        """Delivered. Answers how many were not so before.

        What goes through a channel only ``consumer`` can acknowledge, while it holds it.
        """
        ...

    async def release_signals(self, consumer: str) -> int:
        """Give back what the consumer claimed and did not acknowledge."""
        ...

    async def delivery_failed(
        self, key: str, reason: str, retry_at: Instant, *, consumer: str | None = None
    ) -> bool:
        """This delivery did not work; the signal is tried again at the given time.

        With ``consumer``, only while that one holds it.
        """
        ...

    async def drop_signal(self, key: str, reason: str, *, consumer: str | None = None) -> bool:
        """It will not be delivered, for this reason. With ``consumer``, only if that holds it."""
        ...

    # Queues, channels, wishes

    async def set_queue(self, name: str, width: int) -> None:
        """A new queue, or another width."""
        ...

    async def pause_queue(self, name: str, *, paused: bool) -> bool:
        """Start nothing of it, or go on. False where there is no such queue."""
        ...

    async def remove_queue(self, name: str) -> bool:
        """False where there is no such queue, or tasks of it have not ended."""
        ...

    async def queues(self) -> list[Queue]:
        """All of them, with how many wait and run."""
        ...

    async def add_channel(self, channel: Channel) -> None:
        """Push signals there from now on. A name that is taken is a Conflict."""
        ...

    async def remove_channel(self, name: str, owner: str) -> bool:
        """What it has not delivered is dropped. False where there is no such channel."""
        ...

    async def pause_channel(self, name: str, owner: str, reason: str) -> bool:
        """What it has not delivered, and what comes, is dropped with this reason.

        False where there is no such channel, or it is paused already.
        """
        ...

    async def resume_channel(self, name: str, owner: str) -> bool:
        """Go on with what comes. False where there is no such channel, or it is not paused."""
        ...

    async def channels(self) -> list[Channel]:
        """All of them."""
        ...

    async def wish(self, scope: Scope, kinds: Collection[SignalKind] | None) -> None:
        """What a session wishes to be told from now on; None for everything."""
        ...

    async def wished(self, scope: Scope) -> frozenset[SignalKind] | None:
        """The last wish of a session."""
        ...

    # Housekeeping

    async def prunable(
        self, before: Instant, scope: Scope | None, limit: int, *, after: Task | None = None
    ) -> list[Task]:
        """Tasks that ended before this time and left nothing running, oldest first.

        Those that follow ``after`` in this order, which may have been forgotten meanwhile.
        """
        ...

    async def forget(
        self, task_ids: Sequence[str], gone: Callable[[Sequence[str]], None] | None = None
    ) -> int:
        """Remove ended tasks with their events and signals. Answers how many.

        ``gone`` is called in another thread with the ids of those, when they are gone for good
        and before a new task can have one of them. It must not raise.
        """
        ...

    async def unknown(self, ids: Sequence[str], gone: Callable[[Sequence[str]], None]) -> None:
        """Call ``gone`` in the same manner with those ids that no task has."""
        ...

    async def close(self) -> None:
        """Let go of everything; waiting changes are written first."""
        ...
