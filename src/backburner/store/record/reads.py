"""What a store reads for its callers, wherever its database wants that done."""

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from backburner.model.channels import Channel
from backburner.model.clock import Instant
from backburner.model.events import Event
from backburner.model.messages import Message
from backburner.model.order import OwnerLimit, Queue, Wait
from backburner.model.questions import Question
from backburner.model.session import SessionSummary
from backburner.model.signals import Signal, SignalKind, SignalState
from backburner.model.states import Kind, State
from backburner.model.task import StopRequest, Task
from backburner.model.worker import Worker
from backburner.store.protocol import Scope
from backburner.store.record.reading import Reader

Result = TypeVar("Result")


class Looking:
    """Has a reader, or several."""

    async def _look(self, read: Callable[[Reader], Result], scope: Scope | None = None) -> Result:
        """Carry out a read. With a scope, a database that many share shows nothing of other owners,

        whatever the statement says.
        """
        raise NotImplementedError


class Reads(Looking):
    """See `backburner.store.protocol.Store` for what each method promises."""

    async def get(self, task_id: str, scope: Scope | None = None) -> Task | None:
        return await self._look(lambda read: read.get(task_id, scope), scope)

    async def find(self, prefix: str, scope: Scope, limit: int) -> list[Task]:
        return await self._look(lambda read: read.find(prefix, scope, limit), scope)

    async def newest(
        self,
        scope: Scope,
        *,
        limit: int,
        states: Sequence[State] = (),
        before: int | None = None,
    ) -> list[Task]:
        return await self._look(
            lambda read: read.newest(scope, limit=limit, states=states, before=before), scope
        )

    async def active(self, kind: Kind | None = None) -> list[Task]:
        return await self._look(lambda read: read.active(kind))

    async def outlived_agents(self) -> list[Task]:
        return await self._look(lambda read: read.outlived_agents())

    async def kept(self) -> list[Task]:
        return await self._look(lambda read: read.kept())

    async def waiting_for_keeper(self) -> list[Task]:
        return await self._look(lambda read: read.waiting_for_keeper())

    async def parked(self, scope: Scope) -> int:
        return await self._look(lambda read: read.parked(scope), scope)

    async def workers(self) -> list[Worker]:
        return await self._look(lambda read: read.workers())

    async def tasks_of_worker(self, worker_id: str) -> list[Task]:
        return await self._look(lambda read: read.tasks_of_worker(worker_id))

    async def stops_of_worker(self, worker_id: str) -> dict[str, StopRequest]:
        return await self._look(lambda read: read.stops_of_worker(worker_id))

    async def waiting_for_application(self) -> list[Task]:
        return await self._look(lambda read: read.waiting_for_application())

    async def events(
        self, task_id: str, *, after: int = 0, limit: int = 1000, scope: Scope | None = None
    ) -> list[Event]:
        return await self._look(lambda read: read.events(task_id, after=after, limit=limit), scope)

    async def events_since(self, seq: int, *, limit: int = 1000) -> list[Event]:
        return await self._look(lambda read: read.events_since(seq, limit=limit))

    async def last_event(self) -> int:
        return await self._look(lambda read: read.last_event())

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
        return await self._look(
            lambda read: read.signals(
                scope, states=states, task=task, channel=channel, after=after, limit=limit
            ),
            scope,
        )

    async def prunable(
        self, before: int, scope: Scope | None, limit: int, *, after: Task | None = None
    ) -> list[Task]:
        return await self._look(lambda read: read.prunable(before, scope, limit, after), scope)

    async def any_active(self) -> bool:
        return await self._look(lambda read: read.any_active())

    async def waits(self) -> dict[str, Wait]:
        return await self._look(lambda read: read.waits())

    async def next_due(self) -> Instant | None:
        return await self._look(lambda read: read.next_due())

    async def questions(self, task_id: str, scope: Scope | None = None) -> list[Question]:
        return await self._look(lambda read: read.questions(task_id), scope)

    async def answers(self) -> list[Question]:
        return await self._look(lambda read: read.answers())

    async def messages(self) -> list[Message]:
        return await self._look(lambda read: read.messages())

    async def session_ended(self, scope: Scope) -> bool:
        return await self._look(lambda read: read.session_ended(scope), scope)

    async def queues(self) -> list[Queue]:
        return await self._look(lambda read: read.queues())

    async def owner_limits(self) -> list[OwnerLimit]:
        return await self._look(lambda read: read.owner_limits())

    async def unqueued(self) -> tuple[int, int]:
        return await self._look(lambda read: read.unqueued())

    async def channels(self) -> list[Channel]:
        return await self._look(lambda read: read.channels())

    async def next_delivery(self, *, passing_over: Collection[str] = ()) -> int | None:
        return await self._look(lambda read: read.next_delivery(passing_over))

    async def wished(self, scope: Scope) -> frozenset[SignalKind] | None:
        return await self._look(lambda read: read.wished(scope), scope)

    # Browsing

    async def children(self, task_id: str, scope: Scope, *, limit: int = 200) -> list[Task]:
        return await self._look(lambda read: read.children(task_id, scope, limit), scope)

    async def ended_since(self, at: Instant, scope: Scope, *, limit: int) -> list[Task]:
        return await self._look(lambda read: read.ended_since(at, scope, limit), scope)

    async def newest_signals(
        self,
        scope: Scope,
        *,
        states: Sequence[SignalState] = (),
        channel: str | None = None,
        before: int | None = None,
        limit: int,
    ) -> list[Signal]:
        return await self._look(
            lambda read: read.newest_signals(scope, states, channel, before, limit), scope
        )

    async def sessions(self, scope: Scope, *, recent: int) -> list[SessionSummary]:
        return await self._look(lambda read: read.sessions(scope, recent), scope)
