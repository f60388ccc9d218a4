"""Delivering through channels: claim, push, acknowledge; back-off, and a dead letter at the end.

Runs in the keeper, or in each node of a shared record, beside the worker, and never in its way:
what a receiver does happens in threads and other processes, within a time limit. One delivery at a
time for each channel, by whoever holds it in the record. Towards the outside nothing can be done
exactly once: a keeper that is killed between a delivery and its acknowledgement has it delivered
again, under the same key.
"""

import asyncio
import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Callable

from backburner.model import clock
from backburner.model.channels import Channel, ChannelKind, wait_before_next
from backburner.model.errors import StoreError
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.signals import GIVEN_UP, NOTIFY, Signal
from backburner.runtime import webhook_keys
from backburner.runtime.election import plain_environment
from backburner.runtime.output import describe
from backburner.runtime.scribe import insist
from backburner.runtime.threads import in_thread
from backburner.store.news import Subject, about
from backburner.store.protocol import Scope, Store
from backburner.work.channels.outcome import Delivered, Failed, Gone, Letter, Outcome, failed
from backburner.work.channels.program import Run, command_program, desktop_program

_AT_ONCE = 64
_OF_ONE_OWNER = 4
"""Receivers that hang hold their own lanes, and nobody else's."""
_SPARE_S = 10.0
"""Beyond the limit of a delivery, for ending it and writing down what became of it."""
_AGAIN_S = 1.0
_THREAD = "backburner-delivery"
_SOON_S = 0.02

_deliverers = itertools.count(1)


class Deliverer:
    """Pushes what is to be pushed in one home: by the holder of the keeper lock alone, or by any of

    the nodes of a shared record.
    """

    def __init__(
        self, store: Store, home: Home, settings: Settings, report: Callable[[str], None]
    ) -> None:
        self._store = store
        self._home = home
        self._settings = settings
        self._report = report
        who = f"{os.uname().nodename} {os.getpid()}.{next(_deliverers)}"
        self._consumer = f"deliverer {who} {clock.boot_now()}"
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._of_owner: Counter[str] = Counter()
        """How many of them each has."""
        self._open = False
        self._bell = asyncio.Event()
        self._unsubscribe = store.on_change(self._bell.set, about(Subject.PUSHES))

    @property
    def idle(self) -> bool:
        """Whether there is nothing to deliver, now or later."""
        return not self._lanes and not self._open

    async def run(self) -> None:
        """Deliver, until cancelled."""
        released = self._home.shared  # there others may live: their leases say until when
        while True:
            try:
                if not released:  # whoever held something is dead: we have the lock
                    await self._store.release_deliveries()
                    webhook_keys.sweep(self._home, await self._store.channels())
                    released = True
                await self._look()
            except Exception as error:  # noqa: BLE001 - look again, whatever it was
                self._report(f"deliveries: will look again: {type(error).__name__}: {error}")
                await asyncio.sleep(_AGAIN_S)

    async def close(self) -> None:
        """Let go: what is under way is broken off, and given back."""
        self._unsubscribe()
        lanes = list(self._lanes.values())
        for lane in lanes:
            lane.cancel()
        await asyncio.gather(*lanes, return_exceptions=True)
        if lanes:
            with contextlib.suppress(StoreError):
                await self._store.release_signals(self._consumer)

    async def _look(self) -> None:
        """Take on what can be taken on, then wait for the next reason to look."""
        self._bell.clear()
        free = _AT_ONCE - len(self._lanes)
        full = [owner for owner, n in self._of_owner.items() if n >= _OF_ONE_OWNER]
        most = max((n for n in self._of_owner.values() if n < _OF_ONE_OWNER), default=0)
        due = await self._store.next_delivery(passing_over=full)
        # Reading first: to claim is to write, and most changes of the record concern no channel.
        if free and due is not None and due <= clock.boot_now():
            claimed = await self._store.claim_deliveries(
                consumer=self._consumer,
                limit=free,
                lease_s=self._settings.delivery_limit_s + _SPARE_S,
                each=_OF_ONE_OWNER - most,
                passing_over=full,
            )
            for signal in claimed:
                if signal.key in self._lanes:
                    continue  # it is at it, though for longer than its lease
                self._of_owner[signal.owner] += 1
                self._lanes[signal.key] = asyncio.create_task(self._deliver(signal))
            if claimed:
                self._open = True
                return
        self._open = due is not None
        wait = None if due is None or not free else max(_SOON_S, (due - clock.boot_now()) / 1e6)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._bell.wait()

    # One delivery

    async def _deliver(self, signal: Signal) -> None:
        try:
            outcome = await self._attempt(signal)
            await insist(lambda: self._write_down(signal, outcome), self._report)
        except Exception as error:  # noqa: BLE001 - our own fault: it must not be lost for that
            self._report(f"{signal.key}: {type(error).__name__}: {error}")
            again = failed(f"internal error: {type(error).__name__}")
            await insist(lambda: self._write_down(signal, again), self._report)
        finally:
            del self._lanes[signal.key]
            self._of_owner -= Counter([signal.owner])
            self._bell.set()

    async def _attempt(self, signal: Signal) -> Outcome | None:
        """None where there is no such channel any more."""
        task = await self._store.get(signal.task)
        if signal.channel == NOTIFY:
            bus = str(task.spec.get("notify", "")) if task is not None else ""
            channel = Channel("run", signal.owner, None, ChannelKind.DESKTOP, bus)
        else:
            found = [
                channel
                for channel in await self._store.channels()
                if (channel.owner, channel.name) == (signal.owner, signal.channel)
            ]
            if not found:
                return None
            channel = found[0]
        letter = Letter(signal, None if task is None else describe(self._home, task))
        limit_s = self._settings.delivery_limit_s
        return await push(channel, letter, self._store, self._home, limit_s=limit_s)

    async def _write_down(self, signal: Signal, outcome: Outcome | None) -> None:
        match outcome:
            case Delivered():
                scope = Scope(signal.owner, signal.session)
                await self._store.acknowledge([signal.key], scope, consumer=self._consumer)
            case Failed(reason, asked):
                wait = wait_before_next(signal.tries, self._settings.delivery_retry_s, asked)
                if wait is None:
                    reason = f"{GIVEN_UP} {signal.tries} tries: {reason}"
                    await self._drop(signal, reason)
                else:
                    retry_at = self._store.now() + round(wait * clock.SECOND)
                    await self._store.delivery_failed(
                        signal.key, reason, retry_at, consumer=self._consumer
                    )
            case Gone(reason):
                await self._store.pause_channel(signal.channel, signal.owner, reason)
                await self._drop(signal, reason)
            case None:
                await self._drop(signal, "the channel was removed")

    async def _drop(self, signal: Signal, reason: str) -> None:
        await self._store.drop_signal(signal.key, reason, consumer=self._consumer)


async def push(
    channel: Channel, letter: Letter, store: Store, home: Home, *, limit_s: float
) -> Outcome:
    """Deliver once, within the time limit. What the receiver does is in the answer, no error."""
    match channel.kind:
        case ChannelKind.WEBHOOK:
            try:
                key = await webhook_keys.key_of(store, home, channel)
            except (OSError, ValueError):
                return failed("its key is gone: remove the channel, and add it anew")
            return await _push_webhook(channel, letter, key, limit_s)
        case ChannelKind.COMMAND:
            program = command_program(channel.target, letter, home, plain_environment())
        case ChannelKind.DESKTOP:
            program = desktop_program(channel.target, letter, home, plain_environment())
    run = Run(program, letter, home, limit_s=limit_s)
    if letter.signal.tries > 1:
        await in_thread(run.end, _THREAD)
    problem = run.start()
    if problem is not None:
        return problem
    try:
        async with asyncio.timeout(limit_s + _SPARE_S / 2):
            return await in_thread(run.carry_out, _THREAD)
    except TimeoutError:  # it cannot even be killed
        return failed(f"it took longer than {limit_s:g} s, and does not end")
    except asyncio.CancelledError:
        run.end()
        raise


async def _push_webhook(channel: Channel, letter: Letter, key: str, limit_s: float) -> Outcome:
    from backburner.work.channels.webhook import Request  # slow to load, and seldom needed

    request = Request(
        channel.target, key, letter, limit_s=limit_s, allow_private=channel.allow_private
    )
    try:
        async with asyncio.timeout(limit_s):
            return await in_thread(request.carry_out, _THREAD)
    except TimeoutError:
        return failed(f"no answer within {limit_s:g} s")
    finally:
        request.abort()  # wakes the thread where it still waits
