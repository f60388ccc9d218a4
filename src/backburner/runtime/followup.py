"""Going on with a chat by itself when there is something to tell it (A8).

Signals that come together are handed to a callback in one go, and acknowledged only when it has
done with them. It may say that a live turn is running; what it raises is tried again, more and more
seldom, and given up visibly. Each session has its turns one after the other, and none waits for
those of another. What is claimed is renewed meanwhile, so of several processes that follow the same
session one has it, and a process that was killed lets it go after a lease: then it is told again,
under the same key.
"""

import asyncio
import contextlib
import itertools
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from backburner.model import clock
from backburner.model.channels import wait_before_next
from backburner.model.errors import StoreClosed, StoreError
from backburner.model.followup import Busy, Later
from backburner.model.limits import SIGNAL_LEASE_S
from backburner.model.signals import GIVEN_UP, INBOX, Signal, SignalKind, SignalState
from backburner.model.task import preview
from backburner.runtime.feed import Bell, Feed
from backburner.runtime.scribe import insist
from backburner.store.protocol import Scope, Store

Told = Callable[[list[Signal]], Awaitable[object]]

DELIBERATE = "it was stopped on request, which is not followed up"
"""Why a session is not told of the end of what somebody stopped (A4)."""

_AT_ONCE = 50
_LOOK_EVERY_S = 5.0
"""A lease that ran out, or a retry that is due, makes no change that would wake anyone."""
_AGAIN_S = 1.0
_REASON_CHARS = 300
_SHORTEST_WAIT_S = 0.01
_LAST_WORDS_S = 15.0
"""For a callback that ends on its own, and for writing that down: the disk may be full."""
_TURNS = 16
"""So many sessions have a turn at once; the others of an owner wait for their place."""

_followers = itertools.count(1)


class FollowUp:
    """Follows one session up, or all of an owner, for as long as it runs."""

    def __init__(
        self,
        store: Store,
        feed: Feed,
        scope: Scope,
        tell: Told,
        *,
        batch_s: float,
        retry_s: float,
        report: Callable[[str], None],
        lease_s: float = SIGNAL_LEASE_S,
        consumer: str | None = None,
    ) -> None:
        self._store = store
        self._feed = feed
        self._scope = scope
        self._tell = tell
        self._batch_s = batch_s
        self._retry_s = retry_s
        self._lease_s = lease_s
        self._report = report
        self._takes_over = consumer is not None
        self._consumer = consumer or f"{os.getpid()}.follow{next(_followers)} {clock.boot_now()}"
        self._due: list[float] = []
        self._waiting: dict[str, list[Signal]] = {}
        """What is claimed and not told yet, by session."""
        self._held: set[str] = set()
        """The keys of all that is claimed. What the record has given us and we were not told of,

        since the database was lost in between, is nobody's when its lease ends.
        """
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(_TURNS)
        self._leaving = False

    async def run(self) -> None:
        """Until cancelled; what is held then goes back at once."""
        renewing = asyncio.create_task(self._renew())
        try:
            with self._feed.of_signals() as bell:
                while True:
                    bell.clear()
                    try:
                        await self._take_over()
                        if not await self._look():
                            await self._rest(bell)
                    except StoreClosed:
                        return
                    except Exception as error:  # noqa: BLE001 - a chat must not fall silent
                        self._report(f"following up: will look again: {_said(error)}")
                        await asyncio.sleep(_AGAIN_S)
        finally:
            self._leaving = True
            try:
                await self._end_turns()
            finally:  # whoever is cancelled once more holds nothing back for that
                renewing.cancel()
                with contextlib.suppress(StoreError):
                    await asyncio.shield(self._store.release_signals(self._consumer))
                await asyncio.wait([renewing])

    async def _end_turns(self) -> None:
        """A callback that cannot be cancelled, in a thread, gets the time that it is given."""
        turns = list(self._turns.values())
        for grace_s in (_LAST_WORDS_S, None):
            for turn in turns:
                turn.cancel()
            if turns:
                await asyncio.wait(turns, timeout=grace_s)

    async def _rest(self, bell: Bell) -> None:
        wait = _LOOK_EVERY_S
        if self._due:
            left = min(self._due) - asyncio.get_running_loop().time()
            wait = min(wait, max(left, _SHORTEST_WAIT_S))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await bell.wait()

    async def _take_over(self) -> None:
        """What one of the same name held, which is dead: whoever gives a name knows that."""
        if self._takes_over:
            await self._store.release_signals(self._consumer)
            self._takes_over = False

    async def _look(self) -> bool:
        """Take what there is, and see to it that it is told. Whether there was anything."""
        now = asyncio.get_running_loop().time()
        self._due = [due for due in self._due if due > now]
        batch = await self._claim()
        if not batch:
            return False
        if self._batch_s > 0:
            await asyncio.sleep(self._batch_s)
            with contextlib.suppress(StoreError):  # what is claimed has to be told all the same
                batch += await self._claim()
        self._held.update(signal.key for signal in batch)
        deliberate = [signal for signal in batch if signal.kind is SignalKind.CANCELED]
        for signal in batch:
            if signal not in deliberate:
                self._waiting.setdefault(signal.session, []).append(signal)
        for session in self._waiting:
            if session not in self._turns:
                self._turns[session] = asyncio.create_task(self._take_turns(session))
        for signal in deliberate:
            await insist(partial(self._drop, signal, DELIBERATE), self._report)
            self._held.discard(signal.key)
        return True

    async def _claim(self) -> list[Signal]:
        return await self._store.claim_signals(
            self._scope, consumer=self._consumer, limit=_AT_ONCE, lease_s=self._lease_s
        )

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease_s / 3)
            with contextlib.suppress(StoreError):
                await self._store.renew_signals([*self._held], self._lease_s, self._consumer)

    # Turns

    async def _take_turns(self, session: str) -> None:
        """Tell one session what waits for it, and what comes meanwhile."""
        try:
            while not self._leaving and session in self._waiting:
                async with self._places:
                    await self._take_turn(self._waiting.pop(session))
        except StoreClosed:
            pass
        finally:
            del self._turns[session]

    async def _take_turn(self, claimed: list[Signal]) -> None:
        try:
            # Just before it is told: what its session was deleted for, or somebody answered, is
            # not told any more.
            if signals := await self._still_held(claimed):
                await self._follow_up(signals)
        except StoreClosed:
            raise
        except Exception as error:  # noqa: BLE001 - nor must it hold what it does not tell
            self._report(f"following up {claimed[0].session!r}: will try again: {_said(error)}")
            await insist(lambda: self._postpone(claimed, Later(_AGAIN_S)), self._report)
        finally:
            self._held.difference_update(signal.key for signal in claimed)

    async def _still_held(self, batch: Sequence[Signal]) -> list[Signal]:
        """Without what was dropped meanwhile: a session was deleted, a question answered."""
        scope = Scope(batch[0].owner, batch[0].session)
        after = min(signal.seq for signal in batch) - 1
        held: set[str] = set()
        claimed = (SignalState.CLAIMED,)
        while page := await self._store.signals(scope, states=claimed, channel=INBOX, after=after):
            held.update(signal.key for signal in page)
            after = page[-1].seq
        return [signal for signal in batch if signal.key in held]

    async def _follow_up(self, signals: list[Signal]) -> None:
        """Hand them over, and write down what became of that."""
        try:
            answer = await self._tell(signals)
        except Busy:
            answer = Later()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a stranger's code raises
            if isinstance(error, asyncio.CancelledError):
                await self._refuse_cancelling()
            raised = error
            await insist(lambda: self._failed(signals, raised), self._report)
            return
        if isinstance(answer, Later):
            await insist(lambda: self._postpone(signals, answer), self._report)
        elif answer is None or answer is True:
            await insist(lambda: self._done(signals), self._report)
        else:
            refused = ValueError(f"the callback answered {preview(repr(answer))}")
            await insist(lambda: self._failed(signals, refused), self._report)

    async def _refuse_cancelling(self) -> None:
        """Only who follows up may end that. A callback that cancels itself has failed."""
        await asyncio.sleep(0)  # a loop that shuts down cancels everybody, in any order
        if self._leaving:
            raise asyncio.CancelledError
        turn = asyncio.current_task()
        while turn is not None and turn.cancelling():
            turn.uncancel()

    # What became of it

    async def _done(self, signals: Sequence[Signal]) -> None:
        keys = [signal.key for signal in signals]
        scope = Scope(self._scope.owner, signals[0].session)
        await self._store.acknowledge(keys, scope, consumer=self._consumer)

    async def _postpone(self, signals: Sequence[Signal], later: Later) -> None:
        wait = later.wait_s
        keys = [signal.key for signal in signals]
        await self._store.postpone_signals(keys, wait, consumer=self._consumer)
        self._look_in(wait)

    async def _failed(self, signals: Sequence[Signal], error: BaseException) -> None:
        reason = preview(_said(error), _REASON_CHARS)
        for signal in signals:
            wait = wait_before_next(signal.tries, self._retry_s)
            if wait is None:
                await self._drop(signal, f"{GIVEN_UP} {signal.tries} tries: {reason}")
                continue
            retry_at = self._store.now() + round(wait * clock.SECOND)
            await self._store.delivery_failed(signal.key, reason, retry_at, consumer=self._consumer)
            self._look_in(wait)

    async def _drop(self, signal: Signal, reason: str) -> None:
        await self._store.drop_signal(signal.key, reason, consumer=self._consumer)

    def _look_in(self, wait_s: float) -> None:
        self._due.append(asyncio.get_running_loop().time() + wait_s)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
