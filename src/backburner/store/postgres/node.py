"""The record as one node sees it: a machine that carries out what the engine brings there.

What keepers ask of their home's record is answered with what this node has taken, and with nothing
else; a claim holds only for what it still has.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

from backburner.model.clock import Instant
from backburner.model.ending import Ending
from backburner.model.messages import Message
from backburner.model.questions import Question
from backburner.model.task import Place, Task
from backburner.store.engine import Job
from backburner.store.postgres.admission import let_in
from backburner.store.postgres.connection import Connection
from backburner.store.postgres.engine import TASK, Procrastinate, route_of
from backburner.store.postgres.statements import Statements
from backburner.store.postgres.store import PostgresStore, migrated
from backburner.store.protocol import Output
from backburner.store.record import transaction
from backburner.store.record.rows import to_json, to_message, to_question, to_task
from backburner.store.record.tasks import claim_task

_AT_ONCE = 1000


class NodeStore(PostgresStore):
    """See `backburner.store.protocol.Store` for what each method promises."""

    def __init__(self, address: str, connection: Connection, node: str) -> None:
        super().__init__(address, connection)
        self._node = node
        self.before_end: Callable[[Task], Awaitable[None]] | None = None
        """Called before the end of a task is written: who hears of that finds all of its output."""

    # What the engine brings

    async def appear(
        self, worker: int, *, queues: Sequence[str] = (), places: int = 0, draining: bool = False
    ) -> None:
        """This node is the engine's worker of that number from now on, and takes on so much."""
        await self._count(
            "node_put",
            id=self._node,
            worker=worker,
            routes=to_json([route_of(queue) for queue in queues]),
            places=places,
            draining=draining,
        )

    async def take(self, job: Job) -> Task | None:
        """An attempt is this node's to carry out. None where it is over, or with another one."""
        return await self._writer.write(
            lambda run: run.task("node_take", id=job.task, attempt=job.attempt, node=self._node)
        )

    async def stalled(self, silent_s: float) -> list[Job]:
        """What is with nodes that were not heard of for so long."""
        return await self._writer.write(lambda run: Procrastinate().stalled(run, silent_s))

    async def give_back(self, job: Job) -> bool:
        """Nobody has begun it, and the engine is given it anew. False where somebody has."""

        def operation(run: transaction.Statements) -> bool:
            run.rows("jobs_close", name=TASK, task=job.task, attempt=job.attempt)
            return bool(run.rows("task_let_in_again", id=job.task, attempt=job.attempt))

        return await self._writer.write(operation)

    async def close_job(self, job: Job) -> None:
        """The engine need not wait for a worker that is dead."""
        await self._count("jobs_close", name=TASK, task=job.task, attempt=job.attempt)

    async def let_in_due(self) -> None:
        """The time has come that something has waited for."""
        await self._writer.write(lambda run: let_in(cast("Statements", run), Procrastinate()))

    # What a keeper asks of its record

    async def claim(self, task_id: str, attempt: int, place: Place) -> Task | None:
        def operation(run: transaction.Statements) -> Task | None:
            if not run.rows("node_has", node=self._node, id=task_id, attempt=attempt):
                return None
            return claim_task(run, task_id, attempt, place, node=self._node)

        return await self._writer.write(operation)

    async def finish(
        self,
        task_id: str,
        attempt: int,
        ending: Ending,
        *,
        output: Output | None = None,
        leftovers: int = 0,
        usage: Mapping[str, int] | None = None,
    ) -> Task | None:
        if self.before_end is not None:
            task = await self.get(task_id)
            if task is not None and task.attempt == attempt:
                await self.before_end(task)
        return await super().finish(
            task_id, attempt, ending, output=output, leftovers=leftovers, usage=usage
        )

    async def kept(self) -> list[Task]:
        return await self._own_tasks("node_kept")

    async def waiting_for_keeper(self) -> list[Task]:
        return await self._own_tasks("node_waiting", limit=_AT_ONCE)

    async def any_active(self) -> bool:
        return bool(await self.kept())

    async def next_due(self) -> Instant | None:
        """The engine brings what is due."""
        return None

    async def next_held(self) -> Instant | None:
        """When something is due, the next time."""
        return await super().next_due()

    async def answers(self) -> list[Question]:
        rows = await self._look(lambda read: read.rows("node_answers", node=self._node))
        return [to_question(row) for row in rows]

    async def messages(self) -> list[Message]:
        rows = await self._look(
            lambda read: read.rows("node_messages", node=self._node, limit=_AT_ONCE)
        )
        return [to_message(row) for row in rows]

    async def _own_tasks(self, name: str, **values: int) -> list[Task]:
        rows = await self._look(lambda read: read.rows(name, node=self._node, **values))
        return [to_task(row) for row in rows]


async def open_node(address: str, node: str) -> NodeStore:
    """The record, for the node of this name."""
    store = NodeStore(address, await migrated(address), node)
    await store.begun()
    return store
