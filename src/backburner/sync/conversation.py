"""What a session is told and what it may do about its tasks, without `await`."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from types import TracebackType
from typing import Self

from backburner import app
from backburner.app.conversation import APPROVAL_S
from backburner.app.following import BATCH_S
from backburner.app.following import Following as AsyncFollowing
from backburner.model.limits import DEFAULT_GRACE_S
from backburner.model.signals import INBOX, SignalKind, SignalState
from backburner.sync.portal import Portal
from backburner.sync.signal import Signal
from backburner.sync.task import Task


class Following:
    """See `backburner.app.following.Following`; open inside `with`."""

    def __init__(self, portal: Portal, inner: AsyncFollowing) -> None:
        self._portal = portal
        self._inner = inner

    def __enter__(self) -> Self:
        self._portal.call(self._inner.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._portal.call(self._inner.__aexit__(kind, error, trace))


def handing_over(
    portal: Portal, callback: Callable[[list[Signal]], object]
) -> Callable[[list[app.Signal]], object]:
    """The callback for the asynchronous side, which runs a plain one in a thread."""

    def told(signals: list[app.Signal]) -> object:
        answer = callback([Signal(portal, signal) for signal in signals])
        if isinstance(answer, Awaitable):
            raise TypeError("a callback here is a plain function, without async")
        return answer

    return told


class Conversation:
    """The base of `Session`."""

    _portal: Portal
    _inner: app.Session

    def signals(self, *, follow: bool = True) -> Iterator["Signal"]:
        """What the session is to be told, as it happens."""
        for signal in self._portal.iterate(self._inner.signals(follow=follow)):
            yield Signal(self._portal, signal)

    def told(
        self,
        *,
        states: Sequence[SignalState] = (),
        channel: str | None = INBOX,
        after: int = 0,
        limit: int = 100,
    ) -> list["Signal"]:
        """What the session was and is to be told, without claiming anything."""
        work = self._inner.told(states=states, channel=channel, after=after, limit=limit)
        return [Signal(self._portal, signal) for signal in self._portal.call(work)]

    def wish(self, kinds: Collection[SignalKind] | None) -> None:
        """What the session wishes to be told from now on: these kinds, none, or None for all."""
        self._portal.call(self._inner.wish(kinds))

    def wished(self) -> frozenset[SignalKind] | None:
        """What the session wishes to be told; None for everything."""
        return self._portal.call(self._inner.wished())

    def follow_up(
        self, callback: "Callable[[list[Signal]], object]", *, batch_s: float = BATCH_S
    ) -> Following:
        """Go on with the chat when there is something to tell it: `with` runs it.

        The callback runs in a thread.
        """
        told = handing_over(self._portal, callback)
        return Following(self._portal, self._inner.follow_up(told, batch_s=batch_s))

    def stop(
        self,
        reference: str,
        *,
        force: bool = False,
        grace: float = DEFAULT_GRACE_S,
        timeout: float | None = APPROVAL_S,
    ) -> Task:
        """End a task of this session, or of another one of the owner that agrees."""
        work = self._inner.stop(reference, force=force, grace=grace, timeout=timeout)
        return Task(self._portal, self._portal.call(work))

    def end(self, *, keep: bool = False) -> None:
        """The conversation was deleted: what it would be told is dropped."""
        self._portal.call(self._inner.end(keep=keep))

    def ended(self) -> bool:
        """Whether `end` was called, and nothing was started since."""
        return self._portal.call(self._inner.ended())
