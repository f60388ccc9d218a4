"""A node: one machine of many that carry out the processes of a shared record.

The engine brings attempts here, and says which nodes live (`station`); the worker of processes
does the rest, as it does for a keeper. What a node had that died is taken up again where that is
allowed, else orphaned; the attempt fences off what comes back too late, and its processes are
ended.
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from backburner.model.errors import StoreAway, StoreError, StoreUnusable
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.node import Node as NodeRow
from backburner.model.node import NodeKind, Offer, name_beside
from backburner.model.order import NO_QUEUE
from backburner.model.task import Task
from backburner.model.values import value
from backburner.runtime.artifacts import depot_of
from backburner.runtime.delivery import Deliverer
from backburner.runtime.feed import Feed
from backburner.runtime.home import leave_address, take_address_away
from backburner.runtime.launches import OwnLaunch
from backburner.runtime.node_home import NodeHome
from backburner.runtime.probes import Door, listening
from backburner.runtime.remote_input import InputCarrier
from backburner.runtime.runs.folders import missing_folder, no_room
from backburner.runtime.scribe import insist
from backburner.runtime.station import BEATS, Station
from backburner.runtime.worker import ProcessWorker
from backburner.store.postgres.node import NodeStore, open_node
from backburner.work.sealing import check_secret

if TYPE_CHECKING:
    from backburner.runtime.vitals import Vitals

_LOOK_AGAIN_S = 1.0
_FORGET_EVERY_S = 1.0


@value
class Terms:
    """What a node takes on."""

    queues: Sequence[str] = (NO_QUEUE,)
    concurrency: int = 64
    silent_s: float = 30.0
    """A node that was not heard of for so long is taken for dead: time to restart a worker, which
    then goes on with what the last one left."""
    listen: str | None = None
    """Where its probes are answered, if they are to be."""


@value
class Programs:
    """The command-line agents of a node, which anybody can ask for by name."""

    offers: Sequence[Offer] = ()
    launch: OwnLaunch = lambda _: None

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(offer.name for offer in self.offers)


class Node:
    """Carries out what is brought, until it is told to leave."""

    def __init__(
        self,
        store: NodeStore,
        home: Home,
        settings: Settings,
        *,
        terms: Terms,
        programs: Programs,
        report: Callable[[str], None],
    ) -> None:
        self._store = store
        self._programs = programs
        self._home = home
        self._report = report
        self._feed = Feed(store)
        self._worker = ProcessWorker(store, home, settings, report)
        self._worker.own_launch = programs.launch
        self._inputs = InputCarrier(store, home, report)
        self._deliverer = Deliverer(store, home, settings, report)
        row = NodeRow(
            store.node,
            NodeKind.WORKER,
            socket.gethostname(),
            os.getpid(),
            queues=tuple(terms.queues),
            agents=programs.names,
            places=terms.concurrency,
            silent_s=terms.silent_s,
        )
        self._station = Station(
            store, home, settings, feed=self._feed, node=row, crew=self, report=report
        )

    def vitals(self) -> "Vitals":
        """How it is."""
        from backburner.runtime.vitals import Vitals, Work  # loads what few workers need

        station = self._station
        return Vitals(
            self._store,
            Work(
                station.node.places,
                station.node.silent_s,
                behind_s=lambda: station.behind_s,
                draining=lambda: station.node.draining,
                unfit=lambda: no_room(self._home),
            ),
        )

    async def known(self) -> None:
        """Wait until everybody sees that it takes on tasks."""
        await self._station.known()

    async def drain(self) -> None:
        """Take on nothing more, and leave when the last task has ended."""
        await self._station.drain()

    async def run(self) -> None:
        """Returns when it was drained. Cancelled, it leaves at once, and its jobs go on."""
        # First: it waits for a claim of the last process that is still being written.
        await insist(self._store.begin_again, self._report)
        await insist(self._worker.adopt, self._report)
        if self._programs.offers:
            await insist(partial(self._store.put_offers, self._programs.offers), self._report)
        beside = [
            asyncio.create_task(self._inputs.run()),
            asyncio.create_task(self._deliverer.run()),
            asyncio.create_task(self._forget_what_was_used()),
        ]
        serving = asyncio.create_task(self._station.run())
        serving.add_done_callback(self._leave_when_done)
        try:
            while not serving.done() or not self._worker.idle:
                await self._look()
                if self._store.outdated:
                    raise StoreUnusable(
                        "a newer Backburner has changed the record; what runs here goes on",
                        remedy="upgrade this machine, and start its worker with the same home",
                    )
            await serving
        finally:
            for each in (serving, *beside):
                each.cancel()
            await asyncio.wait([serving, *beside])
            await self._deliverer.close()
            await self._worker.close()
            with contextlib.suppress(StoreError):
                await self._station.leave()
            self._feed.close()

    def _leave_when_done(self, _: object) -> None:
        self._worker.leaving = True
        self._worker.look_again()

    async def _look(self) -> None:
        try:
            await self._worker.work()
        except Exception as error:  # noqa: BLE001 - jobs depend on us: look again, whatever it was
            self._report(f"will look again: {type(error).__name__}: {error}")
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _forget_what_was_used(self) -> None:
        """What jobs were started with, for many at once; what ends before takes its own along."""
        while True:
            await asyncio.sleep(_FORGET_EVERY_S)
            used, self._worker.spent = self._worker.spent, set()
            if used:
                await insist(partial(self._store.forget_secrets, used), self._report)

    # What the station asks of its crew

    async def begin_now(self, task: Task) -> bool:
        """See Crew.begin_now."""
        return await self._worker.start_now(task)

    def take_up(self, task: Task) -> None:
        """See Crew.take_up."""
        self._worker.start(task)

    def unfit(self, task: Task) -> str | None:
        """See Crew.unfit: a folder or room that is not here may be on another machine."""
        if task.hand_over is None and task.spec.get("agent") not in self._programs.names:
            return f"there is no command-line agent {task.spec.get('agent')!r}"
        return missing_folder(task.spec.get("cwd")) or no_room(self._home)

    @property
    def full(self) -> bool:
        """See Crew.full: the engine brings no more than there is room for."""
        return False

    def at_work(self) -> list[Task]:
        """See Crew.at_work."""
        return self._worker.at_work()

    async def follow_record(self) -> None:
        """See Crew.follow_record."""
        await self._worker.follow_record()


class Drains(Protocol):
    """What carries out tools and agents in the process of a node."""

    async def drain(self) -> None:
        """Take on nothing more; returns when the last of them has ended."""
        ...


Beside = Callable[[str], contextlib.AbstractAsyncContextManager[Drains]]
"""Opens it under a name that this node always has, once the record is there."""


async def work(
    home: Home,
    terms: Terms,
    *,
    programs: Programs,
    beside: Beside,
    announce: Callable[[str, str | None], None],
    report: Callable[[str], None],
) -> None:
    """Be a node until SIGTERM or SIGINT: the first one drains it, the second one ends it.

    ``announce`` is told its name, and where its probes are answered.
    """
    door = None if terms.listen is None else Door.of(terms.listen)
    settings = Settings.from_environment()
    depot = depot_of(settings)  # what is wrong with it is said before anything is open
    if depot is not None:
        depot.check_folder()
    check_secret()
    place = NodeHome(home)
    held = None
    try:
        held = leave_address(home)
        if place.may_be_a_copy:
            await _be_the_only_one(home, place, settings, report)
        store = await _opened(home, place, settings, report)
        node = Node(store, home, settings, terms=terms, programs=programs, report=report)
        try:
            async with contextlib.AsyncExitStack() as open_now:
                at = None
                if door is not None:
                    at = await open_now.enter_async_context(listening(door, node.vitals()))
                runs = await open_now.enter_async_context(beside(name_beside(place.name)))
                if await _until_told(node, runs, lambda: announce(place.name, at), report):
                    take_address_away(home)
        finally:
            await store.close()
    finally:
        if held is not None:
            os.close(held)
        place.close()


async def _opened(
    home: Home, place: NodeHome, settings: Settings, report: Callable[[str], None]
) -> NodeStore:
    """The record, for the node of this folder: jobs may depend on one that comes back, and they go

    on meanwhile. Who has never had it open may have been told a wrong address.
    """

    async def open_it() -> NodeStore:
        return await open_node(home.address, place.name, pooler=settings.pooler, carries_out=True)

    if place.knows_its_record:
        found = await insist(partial(_or_why_not, open_it), report)
        if isinstance(found, StoreUnusable):
            raise found
        return found
    store = await open_it()
    place.note_record()
    return store


async def _or_why_not(open_it: Callable[[], Awaitable[NodeStore]]) -> NodeStore | StoreUnusable:
    """What no waiting mends, such as a right that is missing: somebody has to be told."""
    try:
        return await open_it()
    except StoreAway:
        raise
    except StoreUnusable as error:
        return error


async def _be_the_only_one(
    home: Home, place: NodeHome, settings: Settings, report: Callable[[str], None]
) -> None:
    """Under another name, where a machine that lives has this one."""
    silent_s = settings.dead_after_s
    store = await _opened(home, place, settings, report)
    try:
        while not await _is_elsewhere(store, report):
            if await insist(lambda: store.take_name(place.holder, silent_s), report):
                place.keep_name()
                return
            await asyncio.sleep(silent_s / BEATS)  # who took it is heard of soon, or it is dead
        report(f"another machine is {place.name}: this one takes a name of its own")
        place.rename()
    finally:
        await store.close()


async def _is_elsewhere(store: NodeStore, report: Callable[[str], None]) -> bool:
    """Whether somebody who lives has our name: it is heard of again before long."""
    while True:
        reached = store.breaks
        before = await insist(store.seen_itself, report)
        if before is None or not before.alive:
            return False
        pause = before.node.silent_s / BEATS * 2
        await asyncio.sleep(pause)
        after = await insist(store.seen_itself, report)
        if store.breaks == reached:  # else nobody could be heard of
            return after is not None and after.silent_for_s < pause


async def _until_told(
    node: Node, runs: Drains, announce: Callable[[], None], report: Callable[[str], None]
) -> bool:
    """Whether it has finished all that it had."""
    running = asyncio.create_task(node.run())
    draining: list[asyncio.Task[None]] = []

    def leave() -> None:
        if draining:
            for task in (running, *draining):
                task.cancel()
            return
        # Before it is told: whoever reads it may be gone, and work may not depend on them.
        draining.extend(asyncio.create_task(each.drain()) for each in (node, runs))
        report("takes on nothing more, and leaves when the last task has ended")

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave)
    known = asyncio.create_task(node.known())
    try:
        await asyncio.wait([running, known], return_when=asyncio.FIRST_COMPLETED)
        if known.done():
            announce()
        await asyncio.wait([running])
        if draining:
            await asyncio.wait(draining)
        if not running.cancelled():
            running.result()
        return not running.cancelled()
    finally:
        known.cancel()
        if not running.done():
            running.cancel()
            await asyncio.wait([running])
