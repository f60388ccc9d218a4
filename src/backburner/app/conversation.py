"""What a session is told and what it may do about its tasks: the part of it that is no start."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from backburner.app.acting import acts
from backburner.app.following import BATCH_S, Following
from backburner.app.signal import Signal
from backburner.app.task import Task
from backburner.model.errors import NotAllowed
from backburner.model.limits import DEFAULT_GRACE_S
from backburner.model.policy import Action, Policy
from backburner.model.signals import INBOX, SignalKind, SignalState, to_kinds
from backburner.model.states import ACTIVE, Kind
from backburner.model.task import Task as TaskRecord
from backburner.store.protocol import Scope

if TYPE_CHECKING:
    from backburner.app.home import Backburner
    from backburner.app.session import Session

APPROVAL_S = 300.0
"""How long another session has to agree: a person may have to look up from something."""

_PAGE = 100


class Conversation:
    """The base of `Session`."""

    _backburner: "Backburner"
    scope: Scope
    policy: Policy
    """What may be done through this handle, and through those that come from it."""

    def _handle(self, record: TaskRecord) -> Task:
        """A task with what may be done to it here."""
        return Task(self._backburner, record, policy=self.policy)

    # Being told

    async def signals(self, *, follow: bool = True) -> AsyncGenerator[Signal]:
        """What the session is to be told, as it happens. Each is this consumer's until its `ack`.

        Without ``follow``, only what is there. A dry run sees it, and takes nothing.
        """
        self.policy.check(Action.TAKE)
        inbox = self._backburner.inbox
        consume = inbox.peek if self.policy.plays(Action.TAKE) else inbox.consume
        consumed = consume(self.scope, follow=follow)
        # Closed with us: what was not acknowledged has to go back before the home is closed.
        async with contextlib.aclosing(consumed):
            async for record in consumed:
                yield Signal(self._backburner, record, policy=self.policy)

    def follow_up(
        self, callback: "Callable[[list[Signal]], object]", *, batch_s: float = BATCH_S
    ) -> Following:
        """Go on with the chat when there is something to tell it: `async with` runs it.

        ``callback`` gets the signals that came within ``batch_s`` seconds. They are acknowledged
        when it has returned None or True. `Later`, returned, or `Busy`, raised, says that a live
        turn is running; what else it raises is tried again, more and more seldom, and given up in
        the end: `backburner signals --failed`. It may be plain, and then runs in a thread, which
        is waited for, up to 10 seconds, when the block is left. What was stopped on request, and
        what a deleted session would be told, is not followed up. NotAllowed in a dry run.
        """
        self.policy.check(Action.TAKE)
        if self.policy.plays(Action.TAKE):
            raise NotAllowed(
                "a dry run takes no signals, and so follows nothing up",
                remedy="look at what there is: session.told()",
            )
        return Following(self._backburner, self.scope, callback, batch_s, self.policy)

    async def told(
        self,
        *,
        states: Sequence[SignalState] = (),
        channel: str | None = INBOX,
        after: int = 0,
        limit: int = 100,
    ) -> list[Signal]:
        """What the session was and is to be told, without claiming anything; oldest first.

        ``channel`` is where: its inbox, a channel by name, or None for all of them.
        """
        records = await self._backburner.store.signals(
            self.scope, states=states, channel=channel, after=after, limit=limit
        )
        return [Signal(self._backburner, record, policy=self.policy) for record in records]

    @acts(Action.WISH)
    async def wish(self, kinds: Collection[SignalKind] | None) -> None:
        """What the session wishes to be told from now on: these kinds, none, or None for all."""
        await self._backburner.store.wish(self.scope, None if kinds is None else to_kinds(kinds))

    async def wished(self) -> frozenset[SignalKind] | None:
        """What the session wishes to be told; None for everything."""
        return await self._backburner.store.wished(self.scope)

    # Ending

    @acts(Action.STOP)
    async def stop(
        self,
        reference: str,
        *,
        force: bool = False,
        grace: float = DEFAULT_GRACE_S,
        timeout: float | None = APPROVAL_S,
    ) -> Task:
        """End a task: one of this session by its id, or by enough of it.

        One of another session of the same owner, by its whole id, when that session agrees: it is
        asked in a signal, whose ``data["question"]`` it answers with yes or no:
        `task.send("yes", question="stop-…")`. From that answer on the task is to end, whether or
        not somebody still waits here. NotAllowed where it refuses, TimeIsUp where nobody
        answers within ``timeout`` seconds. An admin does not ask. What belongs to another owner
        is not found.
        """
        record = await self._backburner.approvals.stop(
            reference,
            self.scope,
            grace_s=0.0 if force else grace,
            timeout_s=timeout,
            ask=not self.policy.allows(Action.STOP_OTHERS),
        )
        return self._handle(record)

    @acts(Action.END)
    async def end(self, *, keep: bool = False) -> None:
        """The conversation was deleted: what it has not been told, and what comes, is dropped.

        Its tools and agents, parked calls among them, are stopped, and its schedules canceled,
        unless ``keep``. Shell and Python tasks go on. To start something in it brings it back.
        """
        await self._backburner.store.end_session(self.scope)
        if not keep:
            await self._end_schedules()
            await self._end_runs()

    async def ended(self) -> bool:
        """Whether `end` was called, and nothing was started since."""
        return await self._backburner.store.session_ended(self.scope)

    async def _end_runs(self) -> None:
        store, tasks = self._backburner.store, self._backburner.tasks
        before: int | None = None
        while page := await store.newest(self.scope, limit=_PAGE, states=ACTIVE, before=before):
            runs = [task.id for task in page if task.kind in (Kind.TOOL, Kind.AGENT)]
            await asyncio.gather(*(tasks.stop(each, self.scope) for each in runs))
            before = page[-1].seq

    async def _end_schedules(self) -> None:
        from backburner.app.schedule import service
        from backburner.model.schedule import ScheduleState

        open_states = [state for state in ScheduleState if not state.ended]
        for schedule in await self._backburner.store.schedules(self.scope, states=open_states):
            await service(self._backburner).cancel(schedule.id, self.scope)

    # A dry run

    async def _played(self, name: str, given: Mapping[str, Any]) -> Any:
        """What a dry run answers to one of the methods above, or of `Session`."""
        from backburner.app.rehearsal import rehearse  # seldom needed

        return await rehearse(self._backburner, cast("Session", self), name, given)
