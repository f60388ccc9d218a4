"""Whether a job is ready, told once; and the word, at its end, that it never was."""

import asyncio
from typing import Any

from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.signals import NewSignal, SignalKind
from backburner.model.states import ErrorKind
from backburner.model.telling import ready_text
from backburner.runtime.watching.ledger import ATTEMPT, Ledger
from backburner.store.protocol import Facts


class Readiness:
    """Of one attempt. The last of its attendants: the others may find it ready at its very end."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.met = ledger.task.ready_at is not None
        self._noting: asyncio.Task[None] | None = None

    async def become(self, seen: str, data: dict[str, Any] | None = None) -> None:
        """It is ready, and this is how that was seen."""
        if not self.met:
            self.met = True
            self._noting = asyncio.create_task(self._note(seen, data or {}))
        if self._noting is not None:
            # The job may end at this moment: what is being written must not be cut off.
            await asyncio.shield(self._noting)

    async def _note(self, seen: str, data: dict[str, Any]) -> None:
        task = self._ledger.task
        signal = NewSignal(
            SignalKind.READY,
            f"{task.id}:ready:{task.attempt}",
            ready_text(task.title, task.id, seen),
            {**data, "seen": seen},
        )
        facts = Facts(ready=True, data={"text": seen, ATTEMPT: task.attempt}, signal=signal)
        await self._ledger.note(EventKind.READY, facts)

    def look(self) -> None:
        """Nothing: others look."""

    async def attend(self) -> None:
        """Nothing: others tell."""

    async def conclude(self, ending: Ending) -> Ending:
        """The ending, with the word that it came too early."""
        if self._noting is not None:
            await self._noting
        if self.met or (ending.error is not None and ending.error.kind is ErrorKind.SPAWN):
            return ending
        return ending.before_ready()
