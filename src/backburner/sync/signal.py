"""The handle on one thing that a session is told, without `await`."""

from typing import Any

from backburner import app
from backburner.sync.portal import Portal


class Signal:
    """See `backburner.Signal`."""

    def __init__(self, portal: Portal, inner: app.Signal) -> None:
        self._portal = portal
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def key(self) -> str:
        """The same for every repetition of this signal."""
        return self._inner.key

    @property
    def task(self) -> str:
        """The task's id."""
        return self._inner.task

    @property
    def text(self) -> str:
        """What happened, in a sentence."""
        return self._inner.text

    def ack(self) -> bool:
        """It was dealt with. False when that was known already."""
        return self._portal.call(self._inner.ack())

    def resend(self) -> bool:
        """Send one again that failed or was given up. False where that is not possible."""
        return self._portal.call(self._inner.resend())

    def document(self) -> dict[str, Any]:
        """The signal as JSON."""
        return self._inner.document()
