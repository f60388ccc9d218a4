"""How often somebody may ask: a bucket of tokens for each, which fills by itself."""

import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.types import Scope

_KNOWN = 10_000
"""Buckets that are remembered: one that is full again is the same as none."""


class Rate:
    """So many at once, and so many a second after that, for each key."""

    def __init__(
        self, per_second: float, burst: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = burst
        self._now = now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> float:
        """One more. 0.0 where it is allowed; else the seconds until it will be."""
        now = self._now()
        left, at = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_second)
        allowed = left >= 1
        self._buckets[key] = (left - 1 if allowed else left, now)
        while len(self._buckets) > _KNOWN:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._per_second


def client_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"
