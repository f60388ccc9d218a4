"""Who carries out tasks: the keeper and applications of a home, or the nodes of many machines."""

import socket
from dataclasses import field, replace
from typing import Literal

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.home import Home
from backburner.model.node import name_of_worker
from backburner.model.task import Task
from backburner.model.values import value
from backburner.runtime.runs.lock import is_alive
from backburner.store.protocol import Store

CarrierKind = Literal["keeper", "application", "worker"]

KEEPER: Literal["keeper"] = "keeper"


@value
class Carrier:
    """One of them."""

    id: str
    kind: CarrierKind
    machine: str
    pid: int | None
    alive: bool
    running: int
    """How much it carries out, of what takes its places."""
    places: int | None = None
    """How much it takes on at once; None for no limit of its own."""
    draining: bool = False
    """It takes on nothing more."""
    queues: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    heard_at: Instant | None = None
    """When it was last heard of; None for one of this machine, which is seen."""
    tasks: list[Task] = field(default_factory=list[Task])


async def carriers(store: Store, home: Home) -> list[Carrier]:
    """All that are known, dead or alive. The keeper of a home is among them where it

    carries out tools or agents of an application that is gone.
    """
    if home.shared:
        return await _nodes(store)
    found: list[Carrier] = []
    for worker in await store.workers():
        tasks = await store.tasks_of_worker(worker.id)
        found.append(
            Carrier(
                id=worker.id,
                kind=KEEPER if worker.id == KEEPER else "application",
                machine=socket.gethostname(),
                pid=worker.pid,
                alive=is_alive(home, worker.id),
                running=len(tasks),
                tasks=tasks,
            )
        )
    return found


async def _nodes(store: Store) -> list[Carrier]:
    from backburner.store.postgres.nodes import Nodes  # an extra

    assert isinstance(store, Nodes)
    now = clock.now()
    found: dict[str, Carrier] = {}
    for seen in await store.nodes():
        if seen.left:
            continue
        node = seen.node
        carrier = Carrier(
            id=node.id,
            kind=node.kind.value,
            machine=node.machine,
            pid=node.pid or None,
            alive=seen.alive,
            running=seen.has,
            places=node.places or None,
            draining=node.draining,
            queues=node.queues,
            tools=node.tools,
            agents=node.agents,
            heard_at=now - round(seen.silent_for_s * clock.SECOND),
            tasks=await store.tasks_of_node(node.id),
        )
        worker = name_of_worker(node.id)  # which comes before its application: by their names
        found[worker] = _as_one(found[worker], carrier) if worker in found else carrier
    return list(found.values())


def _as_one(worker: Carrier, beside: Carrier) -> Carrier:
    """A worker with what carries out its tools: to people they are one. The places stay those that

    it was told to have, and what runs in them is counted; its tools take none of them.
    """
    return replace(
        worker,
        tools=worker.tools + beside.tools,
        agents=worker.agents + beside.agents,
        tasks=worker.tasks + beside.tasks,
    )
