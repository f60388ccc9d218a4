"""What an open Backburner carries out in itself: its tools and agents, for its sessions."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from backburner.app.task import Task
from backburner.model.node import Offer
from backburner.model.states import Kind
from backburner.model.task import Progress
from backburner.model.task import Task as TaskRecord
from backburner.runtime.feed import Feed
from backburner.runtime.runs.folders import folder_here
from backburner.runtime.runs.options import RunOptions
from backburner.runtime.runs.tools import Caller, Invocation, ToolService
from backburner.runtime.runs.worker import Claim, RunWorker
from backburner.store.protocol import Store

if TYPE_CHECKING:
    from backburner.app.home import Backburner
    from backburner.app.session import Session
    from backburner.runtime.runs.engine_presence import Ability
    from backburner.store.postgres.node import NodeStore


class Runs:
    """Composes the worker and the tools of one Backburner."""

    def __init__(
        self,
        backburner: "Backburner",
        store: Store,
        feed: Feed,
        shared: "NodeStore | None" = None,
    ) -> None:
        """In a ``shared`` record it is a worker of the engine."""
        self._backburner = backburner
        self.worker = RunWorker(store, backburner.home, backburner.settings, feed)
        self.worker.find_work = self._claim
        backburner.tasks.run_here = self.worker.recorded_end
        self._tools = ToolService(self.worker, backburner.registry, backburner.elsewhere)
        if shared is not None:
            from backburner.runtime.runs.engine_presence import EnginePresence  # an extra

            presence = EnginePresence(
                shared,
                backburner.home,
                feed,
                self.worker,
                self._ability,
                returns=backburner.known_as is not None,
            )
            self.worker.is_present_by(presence)

    def look_again(self) -> None:
        """There may be something to take up, and more that it can do."""
        self.worker.can_do_more()

    async def begin(self) -> None:
        """Carry out what waits; returns when the record says what this application can do."""
        await self.worker.begin()

    async def drain(self) -> None:
        """Take on nothing more that others have started; returns when the last run has ended."""
        await self.worker.drain()

    def _ability(self) -> "Ability":
        from backburner.runtime.runs.elsewhere import offer_of
        from backburner.runtime.runs.engine_presence import Ability

        tools = [tool for tool in self._backburner.registry if tool.function is not None]
        agents = self._backburner.agents.names_here()
        offers = [offer_of(tool) for tool in tools if tool.background]
        offers += [Offer(Kind.AGENT, name, {"name": name}) for name in agents]
        return Ability(tuple(tool.name for tool in tools), tuple(agents), offers)

    async def close(self) -> None:
        """The application closes."""
        await self.worker.close()

    async def spawn(
        self, session: "Session", name: str, arguments: Mapping[str, Any], options: RunOptions
    ) -> Task:
        """Start a tool in the background."""
        record = await self._tools.spawn(self._caller(session), name, arguments, options)
        return Task(self._backburner, record)

    async def invoke(
        self,
        session: "Session",
        name: str,
        arguments: Mapping[str, Any],
        budget: float | Literal["own"] | None,
        on_progress: "Callable[[Progress], object] | None" = None,
    ) -> Invocation:
        """Call a tool within a budget."""
        caller = self._caller(session)
        called = await self._tools.invoke(caller, name, arguments, budget, on_progress)
        if called.parked:
            return replace(called, task=Task(self._backburner, called.task))
        return called

    def _caller(self, session: "Session") -> Caller:
        return Caller(
            session.scope,
            session,
            session.folder,
            session.within,
            session.depth,
        )

    def _claim(self, task: TaskRecord) -> Claim | None:
        """How this application carries out something that waits for one."""
        if task.kind is Kind.AGENT:
            return self._backburner.agents.claim(task)
        if task.kind is not Kind.TOOL:
            return None
        work = self._tools.work_for(task)
        if work is None:
            return None
        folder = folder_here(task.spec.get("folder"), self._backburner.home)
        session = self._backburner.session(task.session, owner=task.owner, folder=folder)
        return Claim(work, session, session.folder)
