"""An application of a shared record: a worker of the engine under a name of its own, for as long as
it carries out tools and agents.

Whether it lives is what the engine's heartbeats say. It takes the jobs of what it can carry out,
and says in the record what that is, so that any program can ask for it.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from backburner.model.errors import StoreError, StoreUnusable
from backburner.model.home import Home
from backburner.model.node import Node, NodeKind, Offer
from backburner.model.values import value
from backburner.model.worker import Worker
from backburner.runtime.dead_nodes import take_over
from backburner.runtime.feed import Feed
from backburner.runtime.runs.worker import RunWorker
from backburner.runtime.scribe import insist
from backburner.runtime.station import Station
from backburner.store.engine import Job
from backburner.store.postgres.node import NodeStore
from backburner.work.process.identity import boot_id

_PATIENCE_S = 20.0
"""As for a change of the record."""

_AGAIN_S = 1.0
_SETTLES_S = 0.05
"""Tools are registered one after the other: the record is told once."""


@value
class Ability:
    """What an application can carry out."""

    tools: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    offers: Sequence[Offer] = ()
    """Those of it that may be asked for by anybody."""


class EnginePresence:
    """See `backburner.runtime.runs.presence.Presence`."""

    def __init__(
        self,
        store: NodeStore,
        home: Home,
        feed: Feed,
        worker: RunWorker,
        ability: Callable[[], Ability],
        *,
        returns: bool = False,
    ) -> None:
        """``returns``: an earlier process may have had its name."""
        settings = worker.settings
        self._store = store
        self._worker = worker
        self._ability = ability
        self._who = Worker(store.node, boot_id(), os.getpid())
        self._home = home
        self._feed = feed
        self._returns = returns
        self._node = Node(
            store.node,
            NodeKind.APPLICATION,
            socket.gethostname(),
            os.getpid(),
            places=settings.tools_per_worker,
            silent_s=settings.dead_after_s,
        )
        self._station: Station | None = None
        self._running: asyncio.Task[None] | None = None
        self._saying: asyncio.Task[None] | None = None
        self._again = False

    @property
    def worker(self) -> Worker:
        """See Presence.worker."""
        return self._who

    async def begin(self, *, importable: bool = False) -> None:  # noqa: ARG002 - whoever has the tool
        """See Presence.begin."""
        station = self._run()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await station.known()
        except TimeoutError:
            raise StoreUnusable(
                "the engine of the record cannot be reached",
                remedy="check that the database runs, and has connections left",
            ) from None

    def _run(self) -> Station:
        if self._station is None:
            able = self._ability()
            self._station = Station(
                self._store,
                self._home,
                self._worker.settings,
                feed=self._feed,
                node=replace(self._node, tools=able.tools, agents=able.agents),
                crew=self._worker,
                report=self._worker.report,
            )
            self._running = asyncio.create_task(self._work(self._station))
            self.look_again()
        return self._station

    async def _work(self, station: Station) -> None:
        if self._returns:
            report = self._worker.report
            await insist(partial(take_over, self._store, self._home, report), report)
        await station.run()

    def look_again(self) -> None:
        """See Presence.look_again."""
        self._again = True
        if self._saying is None or self._saying.done():
            self._saying = asyncio.create_task(self._say())

    async def _say(self) -> None:
        while self._again:
            await asyncio.sleep(_SETTLES_S)
            self._again = False
            station = self._run()
            await station.known()
            able = self._ability()
            try:
                await station.change(replace(station.node, tools=able.tools, agents=able.agents))
                await self._store.put_offers(able.offers)
            except StoreError as error:
                self._worker.report(f"what it can carry out is not on record: {error}")
                self._again = True
                await asyncio.sleep(_AGAIN_S)

    async def said(self) -> None:
        """See Presence.said."""
        if self._saying is not None:
            await asyncio.wait([self._saying])

    async def drain(self) -> None:
        """See Presence.drain."""
        if self._saying is not None:
            self._saying.cancel()
            await asyncio.wait([self._saying])
        if self._station is not None:
            await self._station.drain()

    async def end(self) -> None:
        """See Presence.end."""
        if self._station is None or self._running is None:
            return
        self._running.cancel()
        await asyncio.wait([self._running])
        with contextlib.suppress(StoreError):  # else it is seen to as if it had died
            await self._station.leave()
            for task in await self._store.waiting_for_application():
                await self._store.give_back(Job(task.id, task.attempt))
            await self._store.remove_node(self._who.id)
