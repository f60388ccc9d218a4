"""Telling a session: signals are claimed, handed to a consumer, and acknowledged by it."""

import asyncio
import itertools
import logging
import os
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from backburner.model.limits import SIGNAL_LEASE_S
from backburner.model.signals import INBOX, OPEN, Signal
from backburner.runtime.feed import Feed
from backburner.runtime.followup import FollowUp, Told
from backburner.runtime.outages import endured
from backburner.store.protocol import Scope, Store

_log = logging.getLogger("backburner.signals")

_consumers = itertools.count(1)

_LOOK_EVERY_S = 5.0
"""A lease that ran out, or a retry that is due, makes no change that would wake anyone."""

_AT_ONCE = 50


class SignalService:
    """Delivery to consumers in this process."""

    def __init__(self, store: Store, feed: Feed, *, lease_s: float = SIGNAL_LEASE_S) -> None:
        self._store = store
        self._feed = feed
        self._lease_s = lease_s
        self._consumers: set[str] = set()
        self._followers: set[asyncio.Task[None]] = set()

    def follow_up(
        self,
        scope: Scope,
        tell: Told,
        *,
        batch_s: float,
        retry_s: float,
        consumer: str | None = None,
    ) -> asyncio.Task[None]:
        """Hand signals to a callback as they come, until the task is cancelled or we are closed.

        What a dead ``consumer`` of this name held is taken over at once.
        """
        following = FollowUp(
            self._store,
            self._feed,
            scope,
            tell,
            batch_s=batch_s,
            retry_s=retry_s,
            report=_log.warning,
            lease_s=self._lease_s,
            consumer=consumer,
        )
        task = asyncio.create_task(following.run())
        self._followers.add(task)
        task.add_done_callback(self._followers.discard)
        return task

    async def consume(self, scope: Scope, *, follow: bool = True) -> AsyncGenerator[Signal]:
        """Signals for this consumer alone, oldest first; acknowledge each when it was dealt with.

        What was not acknowledged when the iteration ends goes back at once, and what a consumer
        that died had goes back after a lease.
        """
        consumer = f"{os.getpid()}.{next(_consumers)}"
        self._consumers.add(consumer)
        try:
            with self._feed.of_signals() as bell:
                while True:
                    bell.clear()
                    claim = partial(
                        self._store.claim_signals,
                        scope,
                        consumer=consumer,
                        limit=_AT_ONCE,
                        lease_s=self._lease_s,
                    )
                    claimed = await endured(claim, follow=follow)
                    for signal in claimed:
                        yield signal
                    if claimed:
                        continue
                    if not follow:
                        return
                    try:
                        async with asyncio.timeout(_LOOK_EVERY_S):
                            await bell.wait()
                    except TimeoutError:
                        pass
        finally:
            await self._release(consumer)

    async def peek(self, scope: Scope, *, follow: bool = True) -> AsyncGenerator[Signal]:
        """The same signals, each once, for one who takes nothing."""
        after = 0
        with self._feed.of_signals() as bell:
            while True:
                bell.clear()
                look = partial(
                    self._store.signals,
                    scope,
                    states=OPEN,
                    channel=INBOX,
                    after=after,
                    limit=_AT_ONCE,
                )
                found = await endured(look, follow=follow)
                for signal in found:
                    after = signal.seq
                    yield signal
                if not found and not follow:
                    return
                if not found:
                    await bell.wait()

    async def close(self) -> None:
        """Give back what is held, before the store is closed.

        A loop that was left with `break` ends when Python gets to it, which may be after that.
        """
        for follower in list(self._followers):
            follower.cancel()
            await asyncio.wait([follower])
        for consumer in list(self._consumers):
            await self._release(consumer)

    async def _release(self, consumer: str) -> None:
        if consumer in self._consumers:
            self._consumers.discard(consumer)
            await self._store.release_signals(consumer)

    async def acknowledge(self, keys: Sequence[str], scope: Scope) -> int:
        """These were dealt with. Answers how many were not known to be."""
        return await self._store.acknowledge(keys, scope)
