"""How long to wait before a connection to a platform is tried again."""

import asyncio

FIRST_S = 0.5
LONGEST_S = 60.0


class Backoff:
    """Waits that double, until something worked."""

    def __init__(self, first_s: float = FIRST_S) -> None:
        self._first_s = first_s
        self._next_s = first_s

    def worked(self) -> None:
        """The next wait is short again."""
        self._next_s = self._first_s

    async def wait(self, at_least: float | None = None) -> None:
        """Wait, and longer the next time; or as long as the platform said, if that is more."""
        await asyncio.sleep(max(self._next_s, at_least or 0))
        self._next_s = min(self._next_s * 2, LONGEST_S)
