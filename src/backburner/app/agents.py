"""Asking the agents of an open Backburner, for its sessions."""

from collections import ChainMap
from typing import TYPE_CHECKING

from backburner.model.states import Kind
from backburner.model.task import Task as TaskRecord
from backburner.runtime.agents import own_lineage
from backburner.runtime.runs.agents import DEFAULT_AGENT, AgentService, Asking
from backburner.runtime.runs.tools import Caller
from backburner.runtime.runs.worker import Claim
from backburner.store.protocol import Scope
from backburner.work.agents.adapt import Maker
from backburner.work.agents.builtin import ModelAgent
from backburner.work.agents.command import CommandAgent

if TYPE_CHECKING:
    from backburner.app.home import Backburner
    from backburner.app.session import Session
    from backburner.work.assignment import Assignment
    from backburner.work.process.wrapper import Launch


class Agents:
    """Composes what is registered with what carries it out."""

    def __init__(
        self, backburner: "Backburner", registered: dict[str, Maker | CommandAgent]
    ) -> None:
        self._backburner = backburner
        self._names = ChainMap[str, Maker | CommandAgent](registered, {DEFAULT_AGENT: ModelAgent})
        self._service = AgentService(
            backburner.runs.worker,
            backburner.tasks,
            self._names,
            backburner.registry,
            own_session=self._own_session,
            elsewhere=backburner.elsewhere,
        )

    def names(self) -> list[str]:
        """Of those that can be asked, here or elsewhere."""
        elsewhere = self._backburner.elsewhere
        return sorted({*self._names, *(() if elsewhere is None else elsewhere.agents)})

    def names_here(self) -> list[str]:
        """Of those that this process carries out in itself."""
        return self._service.names_here()

    async def ask(self, session: "Session", parent: str | None, asking: Asking) -> TaskRecord:
        """Start an agent on a prompt."""
        caller = Caller(session.scope, session, session.folder, parent, session.depth)
        return await self._service.ask(caller, asking)

    def assignment(self, name: str, prompt: str) -> "Assignment | None":
        """How the keeper starts an agent that is a program; None for one that lives here."""
        return self._service.assignment(Asking(prompt, name))

    def launch(self, task: TaskRecord) -> "Launch | None":
        """How a worker starts a prompt for one of its programs."""
        return self._service.launch_for(task)

    def claim(self, task: TaskRecord) -> Claim | None:
        """How this application carries out a prompt that waits for one."""
        if task.kind is not Kind.AGENT:
            return None
        session = self._backburner.session(task.session, owner=task.owner)
        depth = task.spec.get("depth", 0)
        caller = Caller(session.scope, session, session.folder, task.parent, depth)
        work = self._service.work_for(task, caller)
        return None if work is None else Claim(work, session, session.folder)

    def _own_session(self, caller: Caller, task_id: str) -> "Session":
        """It works in the folder of whoever asked, on tasks of its own."""
        from backburner.app.session import Session

        own = own_lineage(task_id, caller.depth)
        return Session(
            self._backburner,
            Scope(caller.scope.owner, task_id),
            folder=caller.folder,
            parent=own.parent,
            depth=own.depth,
            policy=caller.session.policy,
        )
