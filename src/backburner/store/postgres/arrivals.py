"""What has arrived for the writer: which of it is written in one transaction, and what has waited

for too long for a database that is away.

In a crowd a little is waited for more: a transaction costs about the same whether it has four or
forty, and on a busy machine that cost is what all wait for.
"""

import contextlib
import time
from collections import deque
from queue import Empty

from backburner.store.record.entrance import Asked, Entrance

BATCH = 128
"""Bounds the time that one transaction keeps the other machines waiting."""

_CROWD = 4
"""So many in one transaction are a crowd; fewer get no quicker by waiting for each other."""
_LINGER = 2.0
"""How long a crowd is waited for, as a multiple of the time that its last transaction took."""
_LONGEST_LINGER_S = 0.02


class Arrivals:
    """For the thread that writes."""

    def __init__(self, entrance: Entrance) -> None:
        self._entrance = entrance
        self._arrived: deque[Asked] = deque()
        self._closing = self._has_nothing = False
        self._linger_s = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether the thread waits for more."""
        return self._has_nothing and self._entrance.is_empty

    def next_batch(self) -> list[Asked]:
        """What is written in one transaction; nothing at the end."""
        self._receive()
        if self._linger_s and 0 < len(self._arrived) < BATCH and not self._closing:
            time.sleep(self._linger_s)
            self._receive()
        batch: list[Asked] = []
        while self._arrived and len(batch) < BATCH:
            if batch and (batch[0].then or self._arrived[0].then) is not None:
                break  # such a one is alone in its transaction
            batch.append(self._arrived.popleft())
        return batch

    def took(self, seconds: float, count: int) -> None:
        """So long took the last transaction, of so many."""
        linger_s = _LINGER * seconds if count >= _CROWD else 0.0
        self._linger_s = min(linger_s, _LONGEST_LINGER_S)

    def give_up(self, older_s: float) -> list[Asked]:
        """What is older, and would come to a database that is away: it is left out."""
        with contextlib.suppress(Empty):
            while not self._closing:
                self._take_in(self._entrance.queue.get_nowait())
        before = time.monotonic() - older_s
        given_up: list[Asked] = []
        while self._arrived and self._arrived[0].since < before:
            given_up.append(self._arrived.popleft())
        return given_up

    def _receive(self) -> None:
        """What has arrived; waits where there is nothing to do."""
        with contextlib.suppress(Empty):
            while not self._closing and len(self._arrived) < BATCH:
                self._has_nothing = not self._arrived
                piece = self._entrance.queue.get(block=self._has_nothing)
                self._has_nothing = False
                self._take_in(piece)

    def _take_in(self, piece: list[Asked] | None) -> None:
        if piece is None:
            self._closing = True
        else:
            self._arrived += piece
