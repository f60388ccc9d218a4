"""What a session has its schedules start: its tools and agents are those of the application."""

from dataclasses import replace
from typing import TYPE_CHECKING

from backburner.model.errors import NotAllowed
from backburner.model.states import Kind
from backburner.runtime.agents import lineage_of
from backburner.runtime.runs.folders import kept_folder
from backburner.runtime.schedules.work import Given, Work, read
from backburner.store.protocol import Scope

if TYPE_CHECKING:
    from backburner.app.home import Backburner
    from backburner.work.assignment import Assignment


async def refuse_agents(backburner: "Backburner", scope: Scope) -> None:
    """The session of a sub-agent ends with it, and what it has started; a schedule would not."""
    if (await lineage_of(backburner.store, scope)).parent is not None:
        raise NotAllowed(
            "a sub-agent makes no schedules: they would outlive it",
            remedy="let the session that asked it make the schedule",
        )


async def read_work(backburner: "Backburner", given: Given, folder: str) -> Work:
    """What a caller gives as the work of a schedule, checked; its tools work in ``folder``."""

    def agent(name: str, prompt: str) -> "Assignment | None":
        return backburner.agents.assignment(name, prompt)

    registry = await backburner.known_tools()
    shared = backburner.home.shared
    work = read(given, backburner.settings, registry.get, agent, shared=shared)
    if work.kind is not Kind.TOOL:
        return work
    kept = kept_folder(folder, backburner.home)
    return replace(work, spec={**work.spec, "folder": kept})
