"""What every store promises of signals: what a session was told, and what it is to be told.

Part of `backburner.store.protocol.Store`, whose rules hold here: a method is one transaction.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from backburner.model.clock import Instant
from backburner.model.signals import Signal, SignalState

if TYPE_CHECKING:
    from backburner.store.protocol import Scope


class Telling(Protocol):
    """Signals: claimed, acknowledged, failed, dropped, sent again."""

    async def signals(
        self,
        scope: "Scope",
        *,
        states: Sequence[SignalState] = (),
        task: str | None = None,
        channel: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[Signal]:
        """Signals with a `seq` above ``after``, oldest first; of one channel, or of all."""
        ...

    async def claim_signals(
        self, scope: "Scope", *, consumer: str, limit: int, lease_s: float
    ) -> list[Signal]:
        """Take undelivered signals that nobody holds: they are the consumer's for the lease.

        Where there are none it costs a read, and nothing is written.
        """
        ...

    async def claim_deliveries(
        self,
        *,
        consumer: str,
        limit: int,
        lease_s: float,
        each: int | None = None,
        passing_over: Collection[str] = (),
    ) -> list[Signal]:
        """The same for what is to be pushed through channels: of every owner but those that are

        passed over, of each at most so many.

        One for each channel, and none for those of which anybody holds one: first tries keep their
        order, and come before further ones.
        """
        ...

    async def release_deliveries(self) -> int:
        """Give back what anybody holds for channels: for one who knows that they are dead."""
        ...

    async def next_delivery(self, *, passing_over: Collection[str] = ()) -> int | None:
        """In boot time: when the next one can be claimed, 0 for now; None where nothing is open of

        owners that are not passed over.

        Of a channel of which one is held: when that lease ends.
        """
        ...

    async def resend(self, key: str, scope: "Scope") -> bool:
        """Send one again that failed or was dropped.

        False where it is neither, its channel is gone or paused, or its question not open.
        """
        ...

    async def acknowledge(
        self, keys: Sequence[str], scope: "Scope", *, consumer: str | None = None
    ) -> int:
        """Delivered. Answers how many were not so before.

        What goes through a channel only ``consumer`` can acknowledge, while it holds it.
        """
        ...

    async def release_signals(self, consumer: str) -> int:
        """Give back what the consumer claimed and did not acknowledge."""
        ...

    async def renew_signals(self, consumer: str, lease_s: float) -> int:
        """The consumer is still at what it holds. Answers how many that are."""
        ...

    async def postpone_signals(self, keys: Sequence[str], wait_s: float, *, consumer: str) -> int:
        """Give back what the consumer holds, to be claimed after a while; it was not tried."""
        ...

    async def delivery_failed(
        self, key: str, reason: str, retry_at: Instant, *, consumer: str | None = None
    ) -> bool:
        """This delivery did not work; the signal is tried again at the given time.

        With ``consumer``, only while that one holds it.
        """
        ...

    async def drop_signal(self, key: str, reason: str, *, consumer: str | None = None) -> bool:
        """It will not be delivered, for this reason. With ``consumer``, only if that holds it."""
        ...
