"""What every store promises.

Each method is one transaction. A change of state is guarded by the states it may leave and by the
attempt, and writes its event and, where due, its signal in that same transaction; a guard that
does not hold changes nothing and answers None. When a method returns, the change is on disk.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from backburner.model.channels import Channel
from backburner.model.clock import Instant
from backburner.model.ending import Ending
from backburner.model.events import Event, EventKind
from backburner.model.order import OwnerLimit, Queue, Wait
from backburner.model.signals import NewSignal, SignalKind
from backburner.model.states import Kind, State
from backburner.model.task import EndedFor, NewTask, Place, Progress, StopRequest, Task
from backburner.model.values import value
from backburner.model.worker import Worker
from backburner.store.browsing import Browsing
from backburner.store.conversation import Conversation
from backburner.store.news import Listener, News
from backburner.store.schedules import ScheduleStore
from backburner.store.telling import Telling
from backburner.store.tokens import TokenStore

if TYPE_CHECKING:
    from asyncio import Future


@value
class Scope:
    """Whose tasks: what lies outside does not exist for the caller."""

    owner: str
    session: str | None = None
    """None means every session of the owner."""


@value
class Output:
    """How much a task has written, and how much of that was dropped."""

    total: int = 0
    dropped: int = 0


@value
class Result:
    """A result that a job has given; None is one, too."""

    value: Any


@value
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


class Store(Conversation, ScheduleStore, Telling, TokenStore, Browsing, Protocol):
    """The durable record of tasks, events and signals."""

    def now(self) -> Instant:
        """The time of day, as all who share the record have it: what it decides for others (what is

        due, what was missed, what is old enough to be forgotten) goes by this.
        """
        ...

    # Tasks

    async def create(
        self,
        task: NewTask,
        *,
        limit: int,
        ending: Ending | None = None,
        detail: str | None = None,
    ) -> Task:
        """Write a new task; ``detail`` is what it says while it waits for an application.

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

    async def kept(self) -> list[Task]:
        """Those of them that the keeper looks after: all that are processes (`hand_over`)."""
        ...

    async def waiting_for_keeper(self) -> list[Task]:
        """Of those, what it must act on: to be started, asked to stop, or to be failed because one

        that they come after did not succeed.

        Not those that wait for another task, for their time, for a place in their queue or for
        others of their owner. So many at the most: those that are to stop first, then by priority.
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

    async def next_due(self) -> Instant | None:
        """When the next further attempt of those is due."""
        ...

    # Changes of state

    async def claim(self, task_id: str, attempt: int, place: Place) -> Task | None:
        """queued → running: from now on this attempt is the caller's to carry out.

        None also where its queue is full or paused, or where as many of its owner run as may.
        """
        ...

    async def requeue(
        self, task_id: str, attempt: int, reason: str, *, hand_over: str | None = None
    ) -> Task | None:
        """running → queued with the next attempt; the old attempt is fenced off.

        With ``hand_over``, something that the keeper can start it with.
        """
        ...

    async def fail_try(
        self, task_id: str, attempt: int, ending: Ending, not_before: Instant
    ) -> Task | None:
        """running → queued: this attempt failed, and a further one is made at that time.

        None where no retries are left or someone asked for the end.
        """
        ...

    def finish(
        self,
        task_id: str,
        attempt: int,
        ending: Ending,
        *,
        output: Output | None = None,
        leftovers: int = 0,
        usage: Mapping[str, int] | None = None,
        begun: Task | None = None,
    ) -> Awaitable[Task | None]:
        """Any active state → the ending; tells the session. It is quicker with the task as it was

        ``begun``, which is what `begin` or `claim` has answered.

        To be awaited at once, or followed as a future: who stops waiting does not undo it.
        """
        ...

    def refuse(self, task_id: str, attempt: int, ending: Ending) -> Awaitable[Task | None]:
        """The same of a queued attempt that was the caller's to begin. None where it has begun or

        ended, or is somebody else's by now.
        """
        ...

    async def request_stop(self, task_id: str, scope: Scope, grace_s: float) -> Task | None:
        """Ask for the end. A queued task is canceled at once; one that has ended is unchanged,

        unless it left processes behind: then those are asked to end. None: there is no such task.
        """
        ...

    # Runs in applications

    def begin(
        self,
        task: NewTask,
        place: Place,
        *,
        limit: int | None,
        parked: bool = False,
        began_at: Instant | None = None,
    ) -> "Future[tuple[Task, bool]]":
        """Write a task that runs in the caller's process, from now on or since ``began_at``;

        perhaps as a parked call.

        Answers it, and whether it is new: the same id with the same specification gives the task
        that is there, anything else is a Conflict. LimitReached above ``limit`` active ones of its
        kind in its session, parked calls and others each counted for themselves; and where as many
        of its owner run as may, but for parked calls, which run already. To be awaited as `finish`
        is; who is cancelled meanwhile hears so when it is done, because what is on disk as running
        has to run.
        """
        ...

    async def park(self, task_id: str, attempt: int) -> Task | None:
        """A call that was on record from the start has outlived its budget."""
        ...

    async def parked(self, scope: Scope) -> int:
        """How many parked calls of a session go on."""
        ...

    async def register_worker(self, worker: Worker) -> None:
        """An application that carries out tasks in itself."""
        ...

    async def remove_worker(self, worker_id: str) -> bool:
        """It has gone, and nothing of it is left to see to."""
        ...

    async def workers(self) -> list[Worker]:
        """All that are registered or that running tasks name, dead or alive."""
        ...

    async def tasks_of_worker(self, worker_id: str) -> list[Task]:
        """What it carries out, or did when it died."""
        ...

    async def outlived_agents(self) -> list[Task]:
        """Agents that have ended, and something in their own sessions has not."""
        ...

    async def stops_of_worker(self, worker_id: str) -> dict[str, StopRequest]:
        """What somebody wants it to end."""
        ...

    async def waiting_for_application(self) -> list[Task]:
        """Queued tools and agents, by priority, the oldest first."""
        ...

    # Facts beside the state, guarded by the attempt

    async def begin_ending(self, task_id: str, attempt: int, reason: EndedFor) -> bool:
        """The worker is about to end it. False: it has ended, or that was begun before."""
        ...

    async def note(self, task_id: str, attempt: int, kind: EventKind, facts: Facts) -> bool:
        """Record what was noticed, and tell of it."""
        ...

    # Events

    async def events(
        self, task_id: str, *, after: int = 0, limit: int = 1000, scope: Scope | None = None
    ) -> list[Event]:
        """The events of one task with a number above ``after``."""
        ...

    async def events_since(self, seq: int, *, limit: int = 1000) -> list[Event]:
        """The events of all tasks with a `seq` above this one."""
        ...

    async def last_event(self) -> int:
        """The highest `seq` of an event; 0 where there is none."""
        ...

    def on_change(
        self, listener: Callable[[], None], concerns: Callable[[News], bool] | None = None
    ) -> Callable[[], None]:
        """Call ``listener`` in this event loop after changes, by any process; may be spurious.

        Not for what does not concern it, where the store can say what has changed. Answers a
        function that ends it.
        """
        ...

    def on_news(self, listener: Listener) -> Callable[[], None]:
        """The same for one who wants to hear what it was; None where it can be anything."""
        ...

    @property
    def tells(self) -> bool:
        """Whether it can say what has changed, unless some of it was missed."""
        ...

    def on_outage(self, listener: Callable[[str | None], None]) -> Callable[[], None]:
        """Call ``listener`` in this event loop when the record has been out of reach for a few

        seconds, with the reason, and with None when it is back. Answers as `on_change`.
        """
        ...

    @property
    def outdated(self) -> bool:
        """Whether a newer program has changed the shape of the record since it was opened: it is

        neither read nor written through this store any more.
        """
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

    async def secret(self, name: str) -> str | None:
        """What a shared record keeps apart under this name, as it was given; None where it is gone.

        A home keeps such things in files.
        """
        ...

    async def forget_secrets(self, names: Collection[str]) -> int:
        """They were used. Answers how many there were."""
        ...

    async def set_owner_limit(self, owner: str | None, limit: int | None) -> None:
        """So many tasks of an owner run at once, and what is more waits. None is no limit.

        The owner None stands for every one that has no limit of its own.
        """
        ...

    async def owner_limits(self) -> list[OwnerLimit]:
        """All of them, with how many tasks of each owner wait and run."""
        ...

    async def unqueued(self) -> tuple[int, int]:
        """How many tasks that are in no queue wait, and how many run."""
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
