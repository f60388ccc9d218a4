"""Reading across tasks and sessions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from backburner.model.clock import Instant
from backburner.model.session import SessionSummary
from backburner.model.signals import Signal, SignalState
from backburner.model.states import State
from backburner.model.task import Task
from backburner.store.record.rows import to_json, to_signal
from backburner.store.record.transaction import Rows

if TYPE_CHECKING:
    from backburner.store.protocol import Scope

NEWEST = 2**62
"""Above every number: for a page that begins at the end."""


class BrowsingReader(Rows):
    """See `backburner.store.browsing.Browsing` for what each method promises."""

    def _tasks(self, name: str, /, **values: Any) -> list[Task]:
        raise NotImplementedError

    def children(self, task_id: str, scope: "Scope", limit: int) -> list[Task]:
        """See Browsing.children."""
        return self._tasks(
            "task_children",
            parent=task_id,
            owner=scope.owner,
            session=scope.session,
            limit=limit,
        )

    def ended_since(self, at: Instant, scope: "Scope", limit: int) -> list[Task]:
        """See Browsing.ended_since."""
        return self._tasks(
            "task_ended_since", since=at, owner=scope.owner, session=scope.session, limit=limit
        )

    def newest_signals(
        self,
        scope: "Scope",
        states: Sequence[SignalState],
        channel: str | None,
        before: int | None,
        limit: int,
    ) -> list[Signal]:
        """See Browsing.newest_signals."""
        name = "signals_newest_of_owner" if scope.session is None else "signals_newest_of_session"
        rows = self._rows(
            name,
            owner=scope.owner,
            **({} if scope.session is None else {"session": scope.session}),
            states=to_json(states),
            channel=channel,
            before=NEWEST if before is None else before,
            limit=limit,
        )
        return [to_signal(row) for row in rows]

    def sessions(self, scope: "Scope", recent: int) -> list[SessionSummary]:
        """See Browsing.sessions."""
        found: dict[str, SessionSummary] = {}
        rows = self._rows("session_counts", owner=scope.owner, session=scope.session, limit=recent)
        for name, state, count, newest, agent in rows:
            summary = found.setdefault(name, SessionSummary(name, scope.owner, agent))
            summary.counts[State(state)] = count
            summary.last_created_at = max(summary.last_created_at, newest)
        return [*found.values()]
