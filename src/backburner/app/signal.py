"""The handle on one thing that a session is told."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backburner.app.acting import acts
from backburner.model import clock
from backburner.model.document import signal_document
from backburner.model.policy import FREE, Action, Policy
from backburner.model.signals import Signal as SignalRecord
from backburner.model.signals import SignalState
from backburner.store.protocol import Scope

if TYPE_CHECKING:
    from backburner.app.home import Backburner


class Signal:
    """Something that a session is told."""

    def __init__(
        self, backburner: "Backburner", record: SignalRecord, *, policy: Policy = FREE
    ) -> None:
        self._backburner = backburner
        self.record = record
        self.policy = policy

    def __repr__(self) -> str:
        return f"<Signal {self.key} {self.record.state}>"

    @property
    def key(self) -> str:
        """The same for every repetition of this signal: consumers remember it."""
        return self.record.key

    @property
    def task(self) -> str:
        """The task's id."""
        return self.record.task

    @property
    def text(self) -> str:
        """What happened, in a sentence."""
        return self.record.text

    @acts(Action.TAKE)
    async def ack(self) -> bool:
        """It was dealt with. False when that was known already."""
        scope = Scope(self.record.owner, self.record.session)
        fresh = await self._backburner.inbox.acknowledge([self.key], scope) == 1
        if fresh:
            self.record = replace(
                self.record, state=SignalState.DELIVERED, delivered_at=clock.now()
            )
        return fresh

    @acts(Action.SEND)
    async def resend(self) -> bool:
        """Send one again that failed or was given up.

        False where it is neither, or where its channel is gone or paused.
        """
        scope = Scope(self.record.owner, self.record.session)
        sent = await self._backburner.store.resend(self.key, scope)
        await self._backburner.tasks.see_to_keeper()
        return sent

    async def _played(self, name: str, given: Mapping[str, Any]) -> Any:  # noqa: ARG002 - see `acting.Acting`
        """What a dry run answers to one of the methods above."""
        return False

    def document(self) -> dict[str, Any]:
        """The signal as JSON."""
        return signal_document(self.record, self._backburner.home)
