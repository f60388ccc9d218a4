"""The tasks of a sub-agent: they live in a session of its own, and end with it unless kept.

The keeper needs this too, so nothing here loads an agent.
"""

from backburner.model.home import Home
from backburner.model.limits import DEFAULT_GRACE_S
from backburner.model.states import ACTIVE, Kind
from backburner.model.task import Task
from backburner.runtime.unstarted import ask_to_stop
from backburner.store.protocol import Scope, Store

_AT_ONCE = 100


def ends_its_children(task: Task) -> bool:
    """Whether what it has started is to end with it."""
    return task.kind is Kind.AGENT and not task.spec.get("keep_children", False)


async def stop_children(store: Store, home: Home, task: Task) -> None:
    """Ask for the end of everything that an agent has started, now that it has ended itself.

    Agents among them do the same when they end.
    """
    if not ends_its_children(task):
        return
    scope = Scope(task.owner, task.id)
    before: int | None = None
    while children := await store.newest(scope, limit=_AT_ONCE, states=ACTIVE, before=before):
        for child in children:
            if _is_to_be_asked(child, task):
                await ask_to_stop(store, home, child.id, scope, DEFAULT_GRACE_S)
        before = children[-1].seq


def _is_to_be_asked(child: Task, agent: Task) -> bool:
    """Of an agent that has ended before, only what it has left: a schedule that it made goes on."""
    if agent.finished_at is None:
        return True
    return child.stop is None and child.created_at <= agent.finished_at


async def stop_left_children(store: Store, home: Home) -> None:
    """The same for agents that ended while nobody was there to see to it."""
    for agent in await store.outlived_agents():
        await stop_children(store, home, agent)
