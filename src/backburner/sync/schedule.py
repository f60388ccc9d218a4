"""The handle on one schedule, without `await`."""

from typing import Any, Self

from backburner.app.schedule import Schedule as AsyncSchedule
from backburner.model.schedule import Firing, ScheduleState
from backburner.model.schedule import Schedule as ScheduleRecord
from backburner.sync.portal import Portal


class Schedule:
    """See `backburner.Schedule`."""

    def __init__(self, portal: Portal, inner: AsyncSchedule) -> None:
        self._portal = portal
        self._inner = inner

    def __repr__(self) -> str:
        return repr(self._inner)

    @property
    def record(self) -> ScheduleRecord:
        """As of the last call."""
        return self._inner.record

    @property
    def id(self) -> str:
        """Its name."""
        return self._inner.id

    @property
    def state(self) -> ScheduleState:
        """As of the last call."""
        return self._inner.state

    def refresh(self) -> Self:
        """Look again."""
        self._portal.call(self._inner.refresh())
        return self

    def pause(self) -> Self:
        """Fire no more of it until `resume`."""
        self._portal.call(self._inner.pause())
        return self

    def resume(self) -> Self:
        """Go on with what comes."""
        self._portal.call(self._inner.resume())
        return self

    def cancel(self) -> Self:
        """End it. The tasks that it has started go on."""
        self._portal.call(self._inner.cancel())
        return self

    def firings(self, *, limit: int = 50) -> list[Firing]:
        """What became of its last firings, newest first."""
        return self._portal.call(self._inner.firings(limit=limit))

    def document(self) -> dict[str, Any]:
        """The schedule as JSON."""
        return self._inner.document()
