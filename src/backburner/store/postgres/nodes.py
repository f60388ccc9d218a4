"""Nodes and what they offer, in the record: for those that look, and those that ask for work."""

import json
from collections.abc import Sequence

from backburner.model import clock
from backburner.model.node import Node, NodeKind, Offer, SeenNode
from backburner.model.states import Kind
from backburner.model.task import Task
from backburner.store.engine import route_of_node, route_of_queue, route_of_work
from backburner.store.record.changes import Changes
from backburner.store.record.rows import to_json, to_task
from backburner.store.record.transaction import Row, Statements


def routes_of(node: Node) -> list[str]:
    """The queues of the engine that it takes jobs from."""
    common = [
        *(route_of_queue(name) for name in node.queues),
        *(route_of_work(Kind.TOOL, name) for name in node.tools),
        *(route_of_work(Kind.AGENT, name) for name in node.agents),
    ]
    # One that nothing is sent to is always there: of no queue at all an engine makes every queue.
    return [*common, *(route_of_node(node.id, route) for route in (*common, ""))]


class Nodes(Changes):
    """What every handle on the record can ask and say of nodes."""

    async def nodes(self) -> list[SeenNode]:
        """All that are known: workers, dead or alive, and applications."""
        rows = await self._look(lambda read: read.rows("nodes"))
        return [seen_node(row) for row in rows]

    async def offers(self) -> list[Offer]:
        """The tools and agents that can be asked for."""
        rows = await self._look(lambda read: read.rows("offers"))
        return [Offer(kind, name, json.loads(document)) for kind, name, document in rows]

    async def put_offers(self, offers: Sequence[Offer]) -> None:
        """These can be asked for from now on, as they are now."""

        def operation(run: Statements) -> None:
            for offer in offers:
                run.rows(
                    "offer_put", kind=offer.kind, name=offer.name, document=to_json(offer.document)
                )

        await self._writer.write(operation)

    async def put_node(self, node: Node, worker: int) -> None:
        """It is the engine's worker of that number from now on."""
        values = {
            "id": node.id,
            "worker": worker,
            "kind": node.kind,
            "machine": node.machine,
            "pid": node.pid,
            "silent_s": float(node.silent_s),
            "queues": to_json(node.queues),
            "tools": to_json(node.tools),
            "agents": to_json(node.agents),
            "routes": to_json(routes_of(node)),
            "places": node.places,
            "draining": node.draining,
        }
        # Our clock is asked when it is written: its turn may have come late.
        await self._writer.write(lambda run: run.rows("node_put", now=clock.now(), **values))

    async def tasks_of_node(self, node_id: str) -> list[Task]:
        """What it has at present."""
        rows = await self._look(lambda read: read.rows("node_kept", node=node_id))
        return [to_task(row) for row in rows]

    async def remove_node(self, node_id: str) -> None:
        """It has gone in order, and nothing of it is left to see to."""
        await self._count("node_remove", id=node_id)

    async def forget_nodes(self, contact_s: float) -> None:
        """Those that are dead for good, when all that they had was seen to, and what there was for

        them alone. Whoever asks has been in touch with the database for ``contact_s``.
        """
        gone = {"contact_s": float(contact_s)}
        if not await self._look(lambda read: read.rows("nodes_gone", **gone)):
            return

        def operation(run: Statements) -> None:
            run.rows("nodes_forget", **gone)
            run.rows("node_names_forget")
            run.rows("turns_forget")
            run.rows("contenders_forget")

        await self._writer.write(operation)


def seen_node(row: Row) -> SeenNode:
    """A row of the statement `nodes`."""
    *first, silent_for_s, has, registered, ahead = row
    node_id, kind, machine, pid, silent_s, queues, tools, agents, places, draining = first
    node = Node(
        node_id,
        NodeKind(kind),
        machine,
        pid,
        queues=tuple(json.loads(queues)),
        tools=tuple(json.loads(tools)),
        agents=tuple(json.loads(agents)),
        places=places,
        silent_s=silent_s,
        draining=draining,
    )
    alive = silent_for_s <= silent_s and (registered or draining)  # which takes no jobs any more
    # Who dies stays registered with the engine, until that forgets it.
    left = not (registered or draining or has)
    return SeenNode(node, max(0.0, silent_for_s), alive, has, ahead / clock.SECOND, left)
