"""What an open Backburner carries out in itself: its tools and agents, for its sessions."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from backburner.app.task import Task
from backburner.model.states import Kind
from backburner.model.task import Progress
from backburner.model.task import Task as TaskRecord
from backburner.runtime.feed import Feed
from backburner.runtime.runs.tools import Caller, Invocation, RunOptions, ToolService
from backburner.runtime.runs.worker import Claim, RunWorker
from backburner.store.protocol import Store

if TYPE_CHECKING:
    from backburner.app.home import Backburner
    from backburner.app.session import Session


class Runs:
    """Composes the worker and the tools of one Backburner."""

    def __init__(self, backburner: "Backburner", store: Store, feed: Feed) -> None:
        self._backburner = backburner
        self.worker = RunWorker(store, backburner.home, backburner.settings, feed)
        self.worker.find_work = self._claim
        backburner.tasks.run_here = self.worker.recorded_end
        self._tools = ToolService(self.worker, backburner.registry)

    def look_again(self) -> None:
        """There may be something to take up."""
        self.worker.look_again()

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
        session = self._backburner.session(
            task.session, owner=task.owner, folder=task.spec.get("folder")
        )
        return Claim(work, session, session.folder)
