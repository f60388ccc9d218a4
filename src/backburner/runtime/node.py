"""A node: one machine of many that carry out the processes of a shared record.

The engine brings attempts here, and says which nodes live; the worker of processes does the rest,
as it does for a keeper. What a node had that died is taken up again where that is allowed, else
orphaned; the attempt fences off what comes back too late, and its processes are ended.
"""

import asyncio
import contextlib
import fcntl
import os
import secrets
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.errors import Conflict, StoreError, StoreUnusable
from backburner.model.events import EventKind
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.states import ErrorKind, Kind, State
from backburner.runtime.artifacts import Bringer
from backburner.runtime.contact import Contact
from backburner.runtime.delivery import Deliverer
from backburner.runtime.feed import Feed
from backburner.runtime.fencing import end_fenced_off
from backburner.runtime.mirror import Copier
from backburner.runtime.probes import Door, listening
from backburner.runtime.remote_input import InputCarrier
from backburner.runtime.retention import prune_now_and_then
from backburner.runtime.runs.recovery import why_not_again
from backburner.runtime.schedules.clockwork import Clockwork
from backburner.runtime.scribe import insist
from backburner.runtime.worker import ProcessWorker
from backburner.store.engine import Job
from backburner.store.postgres.engine_worker import EngineWorker
from backburner.store.postgres.node import NodeStore, open_node

if TYPE_CHECKING:
    from backburner.runtime.vitals import Vitals

_OVER = frozenset({EventKind.FINISHED, EventKind.REQUEUED, EventKind.FAILED_TRY})
_LOOK_AGAIN_S = 1.0
_FORGET_EVERY_S = 1.0
_NOBODY = 0
"""No worker of the engine has this number."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a node takes on."""

    queues: Sequence[str] = ("default",)
    concurrency: int = 64
    silent_s: float = 30.0
    """A node that was not heard of for so long is taken for dead: time to restart a worker, which
    then goes on with what the last one left."""

    @property
    def heartbeat_s(self) -> float:
        """How often it says that it lives."""
        return self.silent_s / 6


class Node:
    """Carries out what is brought, until it is told to leave."""

    def __init__(
        self,
        address: str,
        store: NodeStore,
        home: Home,
        settings: Settings,
        *,
        terms: Terms,
        report: Callable[[str], None],
    ) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._terms = terms
        self._report = report
        self._feed = Feed(store)
        self._worker = ProcessWorker(store, home, settings, report)
        self._copier = Copier(store, home, report)
        self._bringer = Bringer(store, home, settings, report)
        self._inputs = InputCarrier(store, home, report)
        self._clockwork = Clockwork(store, home, settings, report)
        self._deliverer = Deliverer(store, home, settings, report)
        self._engine = EngineWorker(
            address,
            queues=terms.queues,
            concurrency=terms.concurrency,
            heartbeat_s=terms.heartbeat_s,
            silent_s=terms.silent_s,
            appear=self._appear,
            carry_out=self._carry_out,
            report=report,
        )
        self._bell = asyncio.Event()
        self._unsubscribe = store.on_change(self._bell.set)
        self._number = _NOBODY
        self._draining = False
        self._leaving: asyncio.Task[None] | None = None

    async def _appear(self, number: int) -> None:
        self._number = number
        await self._store.appear(
            number,
            queues=self._terms.queues,
            places=self._terms.concurrency,
            draining=self._draining,
        )

    def vitals(self) -> "Vitals":
        """How it is."""
        from backburner.runtime.vitals import Vitals, Work  # loads what few workers need

        return Vitals(
            self._store,
            Work(
                self._terms.concurrency,
                self._terms.silent_s,
                behind_s=lambda: self._copier.behind_s,
                draining=lambda: self._draining,
            ),
        )

    def drain(self) -> None:
        """Take on nothing more, and leave when the last task has ended."""
        self._draining = True
        self._engine.stop()
        self._leaving = asyncio.create_task(self._leave_places_to_others())

    async def _leave_places_to_others(self) -> None:
        await insist(lambda: self._appear(self._number), self._report)

    async def run(self) -> None:
        """Returns when it was drained. Cancelled, it leaves at once, and its jobs go on."""
        ours = {(task.id, task.attempt) for task in await self._store.kept()}
        await end_fenced_off(self._home, ours, self._report)
        await self._worker.adopt()
        beside = [
            asyncio.create_task(self._clockwork.run()),
            asyncio.create_task(self._copier.run()),
            asyncio.create_task(self._bringer.run()),
            asyncio.create_task(
                prune_now_and_then(self._store, self._home, self._settings, self._report)
            ),
            asyncio.create_task(self._inputs.run()),
            asyncio.create_task(self._deliverer.run()),
            asyncio.create_task(self._forget_what_was_used()),
            asyncio.create_task(self._see_to_the_dead()),
            asyncio.create_task(self._let_in_what_is_due()),
        ]
        fetching = asyncio.create_task(self._engine.run())
        try:
            while not fetching.done() or not self._worker.idle:
                await self._look()
                if self._store.outdated:
                    raise StoreUnusable(
                        "a newer Backburner has changed the record; what runs here goes on",
                        remedy="upgrade this machine, and start its worker with the same home",
                    )
            await fetching
        finally:
            self._unsubscribe()
            if self._leaving is not None:
                beside.append(self._leaving)
            for task in (*beside, fetching):
                task.cancel()
            await asyncio.wait([*beside, fetching])
            await self._clockwork.close()
            await self._deliverer.close()
            await self._worker.close()
            self._bringer.close()
            with contextlib.suppress(StoreError):  # from now on its time to come back is counted
                await self._store.appear(_NOBODY)
            self._feed.close()

    async def _look(self) -> None:
        try:
            await self._worker.work()
        except Exception as error:  # noqa: BLE001 - jobs depend on us: look again, whatever it was
            self._report(f"will look again: {type(error).__name__}: {error}")
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _carry_out(self, job: Job) -> None:
        """One job of the engine: it lasts for as long as the attempt."""
        async with self._feed.of_task(job.task, _OVER) as bell:
            task = await insist(lambda: self._store.take(job), self._report)
            if task is None:
                return
            self._worker.start(task)
            while task is not None and task.attempt == job.attempt and not task.state.terminal:
                await bell.wait()
                bell.clear()
                task = await insist(lambda: self._store.get(job.task), self._report)
            self._copier.forget(job.task)
            self._bringer.forget(job.task)

    async def _forget_what_was_used(self) -> None:
        """What jobs were started with, for many at once; what ends before takes its own along."""
        while True:
            await asyncio.sleep(_FORGET_EVERY_S)
            used, self._worker.spent = self._worker.spent, set()
            if used:
                await insist(partial(self._store.forget_secrets, used), self._report)

    # The others

    async def _see_to_the_dead(self) -> None:
        """Again and again, by every node: who comes second changes nothing."""
        contact = Contact(self._terms.silent_s)
        while True:
            await asyncio.sleep(self._terms.heartbeat_s)
            try:
                await self._be_heard_of()
                await self._worker.end_what_is_lost()
                own = {(task.id, task.attempt) for task in await self._store.kept()}
                if not contact.holds():
                    continue
                for job in await self._store.stalled(self._terms.silent_s):
                    if (job.task, job.attempt) not in own:  # we live, whatever our heart says
                        await self._take_from_the_dead(job)
            except Exception as error:  # noqa: BLE001 - the next look may do
                self._report(f"dead nodes: {type(error).__name__}: {error}")

    async def _be_heard_of(self) -> None:
        """The engine's worker says that it lives, but not while it only waits for its last jobs."""
        number = self._engine.number
        if number is None or self._draining:
            await self._store.appear(_NOBODY)
        elif not await self._store.is_worker(number):
            self._report("the others took this machine for dead: it begins anew")
            self._engine.begin_anew()

    async def _take_from_the_dead(self, job: Job) -> None:
        task = await self._store.get(job.task)
        reason = f"its machine was not heard of for {self._terms.silent_s:g} s"
        if task is None or task.attempt != job.attempt or task.state.terminal:
            await self._store.close_job(job)
        elif task.state is State.QUEUED:
            self._report(f"{job.task}: {reason}; it had not begun")
            await self._store.give_back(job)
        else:
            refused = why_not_again(task) if task.kind is Kind.TOOL else "it is not started twice"
            self._report(f"{job.task}: {reason}; {refused or 'it is taken up again'}")
            if refused is None:
                await self._store.requeue(job.task, job.attempt, reason)
            else:
                orphaned = Ending.failed(ErrorKind.ORPHANED, f"{reason}; {refused}")
                ending = orphaned if task.stop is None else Ending.canceled()
                await self._store.finish(job.task, job.attempt, ending)
            await self._store.close_job(job)

    async def _let_in_what_is_due(self) -> None:
        """Further attempts wait in the record for their time, by every node: the first one does."""
        while True:
            self._bell.clear()
            due = None
            with contextlib.suppress(Exception):
                due = await self._store.next_held()
            wait = None if due is None else max(0.0, (due - clock.now()) / clock.SECOND)
            try:
                async with asyncio.timeout(wait):
                    await self._bell.wait()
            except TimeoutError:
                with contextlib.suppress(Exception):
                    await self._store.let_in_due()


async def work(
    address: str,
    home: Home,
    terms: Terms,
    *,
    announce: Callable[[str, str | None], None],
    report: Callable[[str], None],
    listen: str | None = None,
) -> None:
    """Be a node until SIGTERM or SIGINT: the first one drains it, the second one ends it.

    ``announce`` is told its name, and where its probes are answered, if they are to be: `listen`.
    """
    door = None if listen is None else Door.of(listen)
    place = NodeHome(home)
    if place.has_worked:  # jobs may depend on it, which go on meanwhile
        store = await insist(lambda: open_node(address, place.name), report)
    else:
        store = await open_node(address, place.name)
    node = Node(address, store, home, Settings.from_environment(), terms=terms, report=report)
    running = asyncio.create_task(node.run())
    told = 0

    def leave() -> None:
        nonlocal told
        told += 1
        if told == 1:
            report("takes on nothing more, and leaves when the last task has ended")
            node.drain()
        else:
            running.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave)
    try:
        async with contextlib.AsyncExitStack() as beside:
            at = None
            if door is not None:
                at = await beside.enter_async_context(listening(door, node.vitals()))
            announce(place.name, at)
            await asyncio.wait([running])
            if not running.cancelled():
                running.result()
    finally:
        if not running.done():
            running.cancel()
            await asyncio.wait([running])
        await store.close()
        place.close()


class NodeHome:
    """The folder of a node: its name, and the proof that it is there once."""

    def __init__(self, home: Home) -> None:
        """Conflict where another process is this node."""
        os.makedirs(home.root, mode=0o700, exist_ok=True)
        self._fd = os.open(home.node, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            raise Conflict(
                f"another worker uses {home.root}", remedy="give each a folder, with --home"
            ) from None
        name = os.read(self._fd, 64).decode()
        if not name:
            name = f"nd_{int(time.time())}_{secrets.token_hex(4)}"
            os.write(self._fd, name.encode())
            os.fsync(self._fd)
        self.name = name
        self.has_worked = os.path.isdir(home.tasks)

    def close(self) -> None:
        """Somebody else may be this node now."""
        os.close(self._fd)
