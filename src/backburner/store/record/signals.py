"""The changes of signals: claimed, acknowledged, failed, dropped, sent again."""

from collections.abc import Collection, Sequence

from backburner.model import clock
from backburner.model.errors import StoreError
from backburner.model.signals import GIVEN_UP, Signal
from backburner.store.protocol import Scope
from backburner.store.record.changes import Changes
from backburner.store.record.rows import to_json, to_signal
from backburner.store.record.transaction import Statements


class SignalChanges(Changes):
    """See `backburner.store.protocol.Store` for what each method promises."""

    async def claim_signals(
        self, scope: Scope, *, consumer: str, limit: int, lease_s: float
    ) -> list[Signal]:
        query = "signals_free_of_owner" if scope.session is None else "signals_free_in_session"
        return await self._take(
            query, consumer, lease_s, limit, scope, owner=scope.owner, session=scope.session
        )

    async def claim_deliveries(
        self,
        *,
        consumer: str,
        limit: int,
        lease_s: float,
        each: int | None = None,
        passing_over: Collection[str] = (),
    ) -> list[Signal]:
        return await self._take(
            "signals_to_push",
            consumer,
            lease_s,
            limit,
            None,
            each=limit if each is None else each,
            passing_over=to_json(list(passing_over)),
        )

    async def release_deliveries(self) -> int:
        return await self._count("deliveries_release")

    async def _take(
        self,
        query: str,
        consumer: str,
        lease_s: float,
        limit: int,
        scope: Scope | None,
        **values: str | int | None,
    ) -> list[Signal]:
        if not await self._any_free(query, scope, **values):
            return []

        def operation(run: Statements) -> list[Signal]:
            boot_now = self._leases.now()
            free = run.rows(query, limit=limit, boot=self._leases.boot, boot_now=boot_now, **values)
            rows = run.rows(
                "signals_claim",
                seqs=to_json([seq for (seq,) in free]),
                consumer=consumer,
                boot=self._leases.boot,
                lease_until=boot_now + round(lease_s * clock.SECOND),
            )
            return sorted((to_signal(row) for row in rows), key=lambda signal: signal.seq)

        return await self._writer.write(operation, owner=scope and scope.owner)

    async def _any_free(self, query: str, scope: Scope | None, **values: str | int | None) -> bool:
        """To claim is to write, and mostly there is nothing. Who gets what is decided there."""
        try:
            return await self._look(lambda read: read.any_free_signal(query, **values), scope)
        except StoreError:
            return True  # the claim says what is wrong

    async def acknowledge(
        self, keys: Sequence[str], scope: Scope, *, consumer: str | None = None
    ) -> int:
        return await self._count_of(
            scope.owner,
            "signals_acknowledge",
            keys=to_json(keys),
            owner=scope.owner,
            session=scope.session,
            consumer=consumer,
            now=self.now(),
        )

    async def release_signals(self, consumer: str) -> int:
        return await self._count("signals_release", consumer=consumer)

    async def renew_signals(self, keys: Sequence[str], lease_s: float, consumer: str) -> int:
        return await self._count(
            "signals_renew",
            keys=to_json(keys),
            consumer=consumer,
            boot=self._leases.boot,
            lease_until=self._leases.now() + round(lease_s * clock.SECOND),
        )

    async def postpone_signals(self, keys: Sequence[str], wait_s: float, *, consumer: str) -> int:
        begin = self._leases.now() + round(wait_s * clock.SECOND)
        return await self._count(
            "signals_postpone",
            keys=to_json(keys),
            consumer=consumer,
            boot=self._leases.boot,
            **{"from": begin},
        )

    async def delivery_failed(
        self, key: str, reason: str, retry_at: int, *, consumer: str | None = None
    ) -> bool:
        wait = max(0, retry_at - self.now())
        failed = await self._count(
            "signal_failed",
            key=key,
            reason=reason,
            consumer=consumer,
            retry_at=retry_at,
            boot=self._leases.boot,
            lease_until=self._leases.now() + wait,
        )
        return bool(failed)

    async def drop_signal(self, key: str, reason: str, *, consumer: str | None = None) -> bool:
        return bool(await self._count("signal_drop", key=key, reason=reason, consumer=consumer))

    async def resend(self, key: str, scope: Scope) -> bool:
        return bool(
            await self._count_of(
                scope.owner,
                "signal_resend",
                key=key,
                owner=scope.owner,
                session=scope.session,
                given_up=GIVEN_UP,
            )
        )
