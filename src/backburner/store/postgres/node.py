"""The record as one node sees it: a machine that carries out what the engine brings there.

What keepers ask of their home's record is answered with what this node has taken, and with nothing
else; a claim holds only for what it still has.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from backburner.model.clock import Instant
from backburner.model.ending import Ending
from backburner.model.errors import StoreError
from backburner.model.events import EventKind
from backburner.model.messages import Message
from backburner.model.node import SeenNode
from backburner.model.questions import Question
from backburner.model.states import Kind, State
from backburner.model.task import Place, Task
from backburner.model.values import value
from backburner.store.engine import Job
from backburner.store.news import News
from backburner.store.postgres.admission import let_in
from backburner.store.postgres.claiming import Claimer, NotAnswered, heard
from backburner.store.postgres.clock import DatabaseClock
from backburner.store.postgres.connection import Connection
from backburner.store.postgres.dead import LeftByTheDead, give_back
from backburner.store.postgres.engine import TASK, Procrastinate
from backburner.store.postgres.inputs import Piece
from backburner.store.postgres.pooler import Pooler
from backburner.store.postgres.statements import Statements
from backburner.store.postgres.store import PostgresStore, opened_with
from backburner.store.protocol import Facts, Output
from backburner.store.record import transaction
from backburner.store.record.claims import CLAIMS, Claim, Claimed
from backburner.store.record.ends import AT_ITS_START, ENDS, End
from backburner.store.record.reading import Reader
from backburner.store.record.rows import to_message, to_question, to_task
from backburner.store.record.together import Together

_AT_ONCE = 1000


@value
class Heard:
    """What the record says of a node, and of the queues."""

    silent_s: float | None
    """Since it has last said that it lives; None where it is no worker of the engine."""
    queues: list[tuple[str, int, int]]
    """By name, how many tasks wait and run."""


@value
class Take:
    """An attempt that the engine has brought to a node."""

    job: Job
    node: str


def take_tasks(run: transaction.Statements, takes: Sequence[Take]) -> list[Task | None]:
    """Each is with its node from now on; None where it is over, elsewhere, or may not begin."""
    wanted = [[take.job.task, take.job.attempt, take.node] for take in takes]
    rows = run.many("nodes_take", wanted=wanted)
    taken = {task.id: task for task in (to_task(row[1:]) for row in rows if row[0])}
    return [taken.get(take.job.task) for take in takes]


TAKES = Together(take_tasks, subject=lambda take: take.job.task, turn=3, lazy=True)


class NodeStore(PostgresStore, LeftByTheDead):
    """See `backburner.store.protocol.Store` for what each method promises."""

    def __init__(
        self,
        address: str,
        connection: Connection,
        clock: DatabaseClock,
        pooler: Pooler | None = None,
        *,
        node: str,
    ) -> None:
        super().__init__(address, connection, clock, pooler)
        self.address = address
        self._node = node
        self._where = {"node": node, "machine": socket.gethostname()}
        self.undecided: set[str] = set()
        """What it has taken and may hand on: nobody here is to begin it yet."""
        self.brought_along: dict[str, str] = {}
        """By name, secrets that came with what is about to begin: nobody has to ask for them."""
        self._claimer = Claimer(address, self._leases)
        self._endings: set[asyncio.Task[Task | None]] = set()
        self.has_begun = 0
        self.has_ended: Counter[tuple[Kind, State]] = Counter()
        """What this process has begun and ended."""
        self.before_end: list[Callable[[Task], Awaitable[None]]] = []
        """Called before the end of an attempt that is with this node is written, and again before

        that of what it has left behind: who hears of either finds all of its output and its files.
        """
        self.has_left: Callable[[str, int], bool] = lambda _task, _attempt: True
        """Whether there may be any of that: most of what ends within milliseconds has none."""
        self.after_end: Callable[[Job], None] = lambda _job: None
        """Called when the end of an attempt is written."""
        self.report: Callable[[str], None] = lambda _text: None
        """Told what was wrong with what is called: a job has its folder in its hands, and can break
        anything there, but not its end."""

    # What the engine brings

    @property
    def node(self) -> str:
        """Its name."""
        return self._node

    async def take(self, job: Job) -> Task | None:
        """An attempt is this node's to carry out. None where it is over, or with another one."""
        return await self._writer.write_together(TAKES, Take(job, self._node))

    async def heard(self) -> Heard:
        """How this node and the queues stand."""

        def read(reader: Reader) -> Heard:
            silent = reader.rows("node_silent", node=self._node)
            queues = reader.rows("queue_depths")
            return Heard(
                float(silent[0][0]) if silent else None,
                [(name, waiting, running) for name, waiting, running in queues],
            )

        return await self._look(read)

    async def seen_itself(self) -> SeenNode | None:
        """What the record has of this node; None where it does not know it."""
        return next((each for each in await self.nodes() if each.node.id == self._node), None)

    async def take_name(self, holder: str, hold_s: float) -> bool:
        """Whether its name is this holder's: nobody else took it so many seconds ago or less."""
        return bool(
            await self._count("node_name_take", id=self._node, holder=holder, hold_s=hold_s)
        )

    async def begin_again(self) -> None:
        """An earlier process of this node is dead: it fetches nothing more, and what it had fetched

        and not taken the engine is given anew.
        """

        def operation(run: transaction.Statements) -> None:
            for task, attempt in run.rows("jobs_left_behind", node=self._node, name=TASK):
                give_back(run, Job(task, attempt), self._node)
            run.rows("engine_worker_retire", node=self._node)

        await self._writer.write(operation)

    async def brought(self, number: int) -> list[Job]:
        """What the engine has brought to its worker of this number, and nobody has taken."""
        rows = await self._look(lambda read: read.rows("jobs_brought", number=number, name=TASK))
        return [Job(task, attempt) for task, attempt in rows]

    async def give_back(self, job: Job) -> bool:
        """Nobody has begun it, and the engine is given it anew. False where somebody has, or where

        another node has taken it.
        """
        return await self._writer.write(lambda run: give_back(run, job, self._node))

    async def prove_contact(self) -> None:
        """Write something: where nobody can, nobody says that it lives. StoreError where not."""
        await self._writer.write(lambda run: run.rows("contact_prove", node=self._node))

    async def hand_on(self, job: Job, *, refused: bool) -> bool:
        """Send what this node has taken and not begun to another one that takes such jobs.

        Where it is ``refused``, this one is not asked again; else it goes only where there is room.
        False where there is no other one.
        """

        def operation(run: transaction.Statements) -> bool:
            who = {"id": job.task, "attempt": job.attempt, "node": self._node}
            found = run.row("node_next", with_room=not refused, **who)
            if found is None:
                return False
            return bool(run.rows("task_hand_on", next=found[0], refused=refused, **who))

        return await self._writer.write(operation)

    async def let_in_due(self) -> None:
        """The time has come that something has waited for; another node may have seen to it."""

        def operation(run: transaction.Statements) -> None:
            if run.rows("task_due", now=run.now()):
                let_in(cast("Statements", run), Procrastinate())

        await self._writer.write(operation)

    async def is_worker(self, number: int) -> bool:
        """Whether the engine has this node's worker under this number, or took it for dead."""
        rows = await self._look(
            lambda read: read.rows("engine_worker", number=number, node=self._node)
        )
        return bool(rows)

    async def quiet_s(self, number: int) -> float | None:
        """Since this node has last said that it lives; None where the record does not have it as

        the engine's worker of this number.
        """
        rows = await self._look(
            lambda read: read.rows("node_quiet", node=self._node, number=number)
        )
        return float(rows[0][0]) if rows else None

    # What a keeper asks of its record

    async def secret(self, name: str) -> str | None:
        return self.brought_along.get(name) or await super().secret(name)

    async def claim(self, task_id: str, attempt: int, place: Place) -> Task | None:
        claim = Claim(task_id, attempt, place, self._node, self._where)
        claimed = await self._claimed(claim)
        self.has_begun += claimed is not None
        if claimed is not None and claimed.events > AT_ITS_START:
            # Something may have been sent to it before anybody here could hear of that.
            self._changed(News(((task_id, EventKind.SENT),)))
        return claimed and claimed.task

    async def _claimed(self, claim: Claim) -> Claimed | None:
        if self._commits.is_idle:
            try:
                return await self._claimer.claim(claim)
            except NotAnswered as error:
                claim = replace(claim, unsure=error.unsure)
        return await self._writer.write_together(CLAIMS, claim)

    def finish(
        self,
        task_id: str,
        attempt: int,
        ending: Ending,
        *,
        output: Output | None = None,
        leftovers: int = 0,
        usage: Mapping[str, int] | None = None,
        begun: Task | None = None,
    ) -> Awaitable[Task | None]:
        end = partial(
            super().finish,
            task_id,
            attempt,
            ending,
            output=output,
            leftovers=leftovers,
            usage=usage,
            begun=begun,
        )
        ending_it = asyncio.create_task(self._finish(task_id, attempt, end))
        self._endings.add(ending_it)
        ending_it.add_done_callback(self._endings.discard)
        ending_it.add_done_callback(heard)
        return asyncio.shield(ending_it)  # who stops waiting does not undo it

    def refuse(self, task_id: str, attempt: int, ending: Ending) -> Awaitable[Task | None]:
        refused = End(task_id, attempt, ending, unbegun=True, node=self._node)
        return self._finish(task_id, attempt, lambda: self._writer.write_together(ENDS, refused))

    async def _finish(
        self, task_id: str, attempt: int, end: Callable[[], Awaitable[Task | None]]
    ) -> Task | None:
        await self._ends(task_id, attempt)
        ended = await end()
        if ended is not None:
            self.has_ended[ended.kind, ended.state] += 1
            self.after_end(Job(task_id, attempt))
        return ended

    async def fail_try(
        self, task_id: str, attempt: int, ending: Ending, not_before: Instant
    ) -> Task | None:
        await self._ends(task_id, attempt)
        return await super().fail_try(task_id, attempt, ending, not_before)

    async def note(self, task_id: str, attempt: int, kind: EventKind, facts: Facts) -> bool:
        if kind is EventKind.LEFTOVERS and facts.leftovers == 0:  # which may have gone on writing
            await self._ends(task_id, attempt, lingers=True)
        return await super().note(task_id, attempt, kind, facts)

    async def _ends(self, task_id: str, attempt: int, *, lingers: bool = False) -> None:
        """What another node has, and this one ends because that is dead, it has at best copies of:

        they may be older than what the record has.
        """
        if not self.before_end or not self.has_left(task_id, attempt):
            return
        for task in await self._own_tasks("node_has", id=task_id):
            if task.attempt == attempt and task.state.terminal == lingers:
                for each in self.before_end:
                    await self._before(each, task)

    async def _before(self, do: Callable[[Task], Awaitable[None]], task: Task) -> None:
        try:
            await do(task)
        except StoreError:
            raise  # the end cannot be written either, and is tried again with all of it
        except Exception as error:  # noqa: BLE001 - whatever it is, the task has ended
            self.report(f"{task.id}: before its end: {type(error).__name__}: {error}")

    async def ends_written(self) -> None:
        """Wait for the ends that are being written."""
        if self._endings:
            await asyncio.wait(self._endings)

    async def close(self) -> None:
        await self.ends_written()
        await self._claimer.close()
        await super().close()

    async def waiting_for_application(self) -> list[Task]:
        return self._decided(await self._own_tasks("node_queued", limit=_AT_ONCE))

    async def kept(self) -> list[Task]:
        return await self._own_tasks("node_kept")

    async def waiting_for_keeper(self) -> list[Task]:
        return self._decided(await self._own_tasks("node_waiting", limit=_AT_ONCE))

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

    async def inputs(self) -> list[Piece]:
        """What was sent to the commands of this node, oldest first."""
        rows = await self._look(
            lambda read: read.rows("node_inputs", node=self._node, limit=_AT_ONCE)
        )
        return [
            Piece(number, task, attempt, None if data is None else bytes(data))
            for number, task, attempt, data in rows
        ]

    async def input_done(self, number: int, outcome: str) -> None:
        """The job has it, where ``outcome`` is empty; else why not."""
        await self._count("input_done", seq=number, outcome=outcome)

    def _decided(self, tasks: list[Task]) -> list[Task]:
        return [task for task in tasks if task.id not in self.undecided]

    async def _own_tasks(self, name: str, **values: int | str) -> list[Task]:
        rows = await self._look(lambda read: read.rows(name, node=self._node, **values))
        return [to_task(row) for row in rows]


async def open_node(
    address: str, node: str, *, pooler: str = "", carries_out: bool = False
) -> NodeStore:
    """The record, for the node of this name; read over the ``pooler``, where there is one.

    One that ``carries_out`` writes all the time: StoreAway where it could only read.
    """
    connected = await asyncio.to_thread(opened_with, address, pooler, writes=carries_out)
    store = NodeStore(address, *connected, node=node)
    await store.begun()
    return store
