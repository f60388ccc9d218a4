"""Where the session of a sub-agent stands: it is named after its task, and bounded in depth."""

from backburner.model.errors import LimitReached, NotAllowed
from backburner.model.limits import AGENT_DEPTH_MAX
from backburner.model.states import Kind
from backburner.model.values import value
from backburner.runtime.children import ends_its_children
from backburner.store.protocol import Scope, Store


@value
class Lineage:
    """Where a session stands: whose it is, and how many agents are above it."""

    parent: str | None = None
    """The agent's task, where it is the session of one."""
    depth: int = 0


def own_lineage(task_id: str, depth: int) -> Lineage:
    """Of the session of an agent whose task has this depth."""
    return Lineage(task_id, depth + 1)


async def lineage_of(store: Store, scope: Scope) -> Lineage:
    """Of a session by its name: a process that an agent started knows no more than that."""
    if scope.session is None:
        return Lineage()
    agent = await store.get(scope.session, Scope(scope.owner))
    if agent is None or agent.kind is not Kind.AGENT:
        return Lineage()
    return own_lineage(agent.id, agent.spec.get("depth", 0))


async def check_may_start(store: Store, scope: Scope, lineage: Lineage) -> None:
    """Whether more work may be started there. LimitReached, NotAllowed."""
    if lineage.depth > AGENT_DEPTH_MAX:
        raise LimitReached(
            f"an agent that is {AGENT_DEPTH_MAX} agents deep starts no work of its own: "
            f"{AGENT_DEPTH_MAX} is the limit",
            remedy="do it without a further agent",
        )
    if lineage.parent is not None:
        agent = await store.get(lineage.parent, Scope(scope.owner))
        if agent is not None and agent.state.terminal and ends_its_children(agent):
            raise NotAllowed(f"the agent {agent.id} has ended, and starts nothing any more")
