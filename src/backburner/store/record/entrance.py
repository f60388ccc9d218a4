"""Where changes arrive from the event loop and are handed to the thread that writes them.

The thread is woken once for all that one turn of the loop has for it, and answers them in one go.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from backburner.model.errors import StoreClosed
from backburner.store.record.together import Together, Waiting
from backburner.store.record.transaction import Statements

_PIECE = 64
"""So many come to the thread at once, which may be so many too many for a bound of its own."""


class Asked(Waiting):
    """An operation and the future that its caller waits for."""

    __slots__ = ("error", "future", "owner", "result", "since", "then")

    def __init__(
        self,
        kind: Together[Any, Any] | None,
        order: Any,
        then: Callable[[Any], None] | None,
        future: asyncio.Future[Any],
        owner: str | None,
    ) -> None:
        super().__init__(kind, order)
        self.then = then
        self.owner = owner
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None
        self.since = time.monotonic()

    def settle(self) -> None:
        """In the caller's loop."""
        if self.future.done():
            return  # the caller went away; what was written stays written
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Whole(asyncio.Future[Any]):
    """Of a kind that is `whole`. What cannot be cancelled goes on to its end, and whoever was

    cancelled while they waited for it hears so then.
    """

    def cancel(self, msg: Any = None) -> bool:  # noqa: ARG002 - as futures have it
        """Not this one."""
        return False


class Spoilt(Exception):
    """An operation has failed after it had changed something, which must not be committed."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class Entrance:
    """Of the one writer of a process, for one event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._closed = False
        self._arriving: list[Asked] = []
        self.queue: SimpleQueue[list[Asked] | None] = SimpleQueue()
        """What has arrived, in pieces; None is the end of it."""

    def ask(
        self,
        kind: Together[Any, Any] | None,
        order: Any,
        then: Callable[[Any], None] | None = None,
        owner: str | None = None,
    ) -> asyncio.Future[Any]:
        """One more is to be done. With no kind the order is what is called with the statements."""
        future: asyncio.Future[Any] = (
            Whole(loop=self._loop) if kind and kind.whole else self._loop.create_future()
        )
        with self._lock:  # nothing may queue up behind the end, where nobody would answer
            if self._closed:
                raise StoreClosed("the record is closed", remedy="open it again")
            if not self._arriving:
                self._loop.call_soon(self._hand_over)
            self._arriving.append(Asked(kind, order, then, future, owner))
        return future

    @property
    def is_empty(self) -> bool:
        """Whether nothing has arrived that was not handed over."""
        return not self._arriving and self.queue.empty()

    def close(self) -> None:
        """Nothing more comes in."""
        with self._lock:
            self._closed = True
            self._hand_over_arrived()
            self.queue.put(None)

    def _hand_over(self) -> None:
        with self._lock:
            self._hand_over_arrived()

    def _hand_over_arrived(self) -> None:
        for at in range(0, len(self._arriving), _PIECE):
            self.queue.put(self._arriving[at : at + _PIECE])
        self._arriving = []

    def settle(self, done: Sequence[Asked], then: Callable[[], None] | None = None) -> None:
        """In the loop, and in one go: to wake it costs as much as a few statements."""

        def settle() -> None:
            for each in done:
                each.settle()
            if then is not None:
                then()

        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(settle)


def carry_out(run: Statements, group: Sequence[Asked]) -> Sequence[Any]:
    """The answers to a group that `together.groups` has made."""
    kind = group[0].kind
    if kind is None:
        return [each.order(run) for each in group]
    return kind.carry_out(run, [each.order for each in group])


def answer(group: Sequence[Asked], answers: Sequence[Any]) -> None:
    """Each in its place, where an exception is a refusal."""
    for each, said in zip(group, answers, strict=True):
        refused = isinstance(said, Exception)
        each.error, each.result = (said, None) if refused else (None, said)
