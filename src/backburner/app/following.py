"""Following a chat up: a callback gets what its sessions are told, for as long as it is open."""

import asyncio
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from backburner.app.signal import Signal
from backburner.model.errors import UsageError
from backburner.model.followup import LONGEST_WAIT_S
from backburner.model.policy import FREE, Policy
from backburner.model.signals import Signal as SignalRecord
from backburner.store.protocol import Scope

if TYPE_CHECKING:
    from backburner.app.home import Backburner

BATCH_S = 0.2
"""Signals that come within this time are told in one go: a turn of a model for each would be a
bill, and confusing."""

_LEAVE_S = 10.0
"""A thread cannot be cancelled. What it does when the block is left gets this time to be done: else
it is told again, though it was heard."""


class Following:
    """Open inside `async with`. What was not followed up when it is left goes back at once."""

    def __init__(
        self,
        backburner: "Backburner",
        scope: Scope,
        callback: Callable[[list[Signal]], object],
        batch_s: float,
        policy: Policy = FREE,
    ) -> None:
        if not 0 <= batch_s <= LONGEST_WAIT_S:
            raise UsageError("the time to wait for more signals must be 0 to 86400 seconds")
        self._backburner = backburner
        self._scope = scope
        self._callback = callback
        self._batch_s = batch_s
        self._policy = policy
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = self._backburner.inbox.follow_up(
            self._scope,
            self._tell,
            batch_s=self._batch_s,
            retry_s=self._backburner.settings.delivery_retry_s,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()  # what it was not made for

    async def _tell(self, records: list[SignalRecord]) -> object:
        signals = [Signal(self._backburner, record, policy=self._policy) for record in records]
        if _is_async(self._callback):
            answer = self._callback(signals)
        else:
            answer = await self._in_a_thread(signals)
        return await answer if inspect.isawaitable(answer) else answer

    async def _in_a_thread(self, signals: list[Signal]) -> object:
        """It may take long."""
        thread = asyncio.ensure_future(asyncio.to_thread(self._callback, signals))
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            if not thread.done():
                await asyncio.wait([thread], timeout=_LEAVE_S)
            if not thread.done():
                thread.cancel()
                raise
            return thread.result()


def _is_async(callback: Callable[[list[Signal]], object]) -> bool:
    call = getattr(callback, "__call__", None)  # noqa: B004 - of an object that can be called
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(call)
