"""What happens inside one transaction: statements by name, and the steps that changes share.

How statements reach a database, and what it makes of texts, is the affair of its own `Statements`.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.signals import NewSignal, SignalKind, SignalState
from backburner.model.task import Task
from backburner.model.wake import Wake, wake_of
from backburner.store.record.rows import to_json, to_task

Row = tuple[Any, ...]
Start = tuple[str, int]
"""A boot, and a time in it."""


class Rows:
    """Whoever can be asked for the rows of a statement that only reads."""

    def _rows(self, name: str, /, **values: Any) -> list[Row]:
        raise NotImplementedError


class Statements:
    """Runs the named statements on one connection."""

    def now(self) -> Instant:
        """See Store.now."""
        return clock.now()

    def rows(self, name: str, /, **values: Any) -> list[Row]:
        """Every row of a statement."""
        raise NotImplementedError

    def row(self, name: str, /, **values: Any) -> Row | None:
        """The first row; the statement is run to its end."""
        rows = self.rows(name, **values)
        return rows[0] if rows else None

    def task(self, name: str, /, **values: Any) -> Task | None:
        """The task that a statement gives."""
        row = self.row(name, **values)
        return None if row is None else to_task(row)

    def add_event(self, task: Task, kind: EventKind, data: dict[str, Any]) -> None:
        """The event that goes with a change that the task's row has counted already."""
        self.rows("event_insert", task=task.seq, at=self.now(), kind=kind, data=to_json(data))
        self.happens(task.id, kind)

    def happens(self, task_id: str, kind: EventKind) -> None:
        """An event is written; for a database that tells others what happened."""

    def many(self, name: str, /, **values: Any) -> list[Row]:
        """The same for many: a list among the values is given as JSON, with a list for each."""
        raise NotImplementedError

    def found(self, name: str, /, **values: Any) -> list[list[Any]]:
        """The rows that such a statement finds, which may come as one JSON."""
        raise NotImplementedError

    def acting_for(self, owner: str) -> AbstractContextManager[None]:  # noqa: ARG002 - a file has one
        """What is done in there touches nothing of other owners: a database that many share sees

        to it. A file is one user's, and holds to what the statements say.
        """
        return nullcontext()

    def tell(
        self, task: Task, signal: NewSignal, now: Instant, *, start: Start | None = None
    ) -> None:
        """Tell the session of one thing, and its channels; see `telling`."""
        self.many("signals_insert", signals=[telling(task, signal, now, start=start)])

    def tell_all(self, signals: list[Sequence[Any]]) -> dict[str, SignalState]:
        """Tell sessions and their channels, each once; see `telling`.

        Answers what became of it in the inbox, by key: nothing of one that was told before.
        """
        raise NotImplementedError


def telling(
    task: Task, signal: NewSignal, now: Instant, *, start: Start | None = None
) -> Sequence[Any]:
    """A signal as `Statements.tell_all` takes it.

    ``start`` is the boot and the time in it from when on they may be told.
    """
    silent = signal.kind is SignalKind.MESSAGE and wake_of(task.spec) is Wake.SILENT
    return (
        signal.key, task.seq, task.owner, task.session, signal.kind, signal.text,
        to_json(signal.data), now, "the task is to be silent" if silent else None,
        *(start or (None, None)),
        "notify" in task.spec and signal.kind not in _NOT_ON_THE_SCREEN,
    )  # fmt: skip


_NOT_ON_THE_SCREEN = (SignalKind.CANCELED, SignalKind.MESSAGE)


def ending_data(ending: Ending, leftovers: int = 0) -> dict[str, Any]:
    """What an event and a signal say of an ending."""
    error = ending.error
    data = {
        "state": ending.state.value,
        "exit_code": ending.exit_code,
        "error": {"kind": error.kind.value, "message": error.message} if error else None,
        "summary": ending.summary,
        "leftovers": leftovers or None,
    }
    return {name: value for name, value in data.items() if value is not None}
