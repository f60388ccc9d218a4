"""What the changes of every noun share: one operation is one transaction of the writer."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from backburner.model.clock import Instant
from backburner.model.events import EventKind
from backburner.model.task import Task
from backburner.store.record.leases import LeaseClock
from backburner.store.record.reads import Looking
from backburner.store.record.together import Together
from backburner.store.record.transaction import Statements

if TYPE_CHECKING:
    from asyncio import Future

Order = TypeVar("Order")
Result = TypeVar("Result")


class Writing(Protocol):
    """What carries changes out."""

    async def write(
        self,
        operation: Callable[[Statements], Result],
        then: Callable[[Result], None] | None = None,
        *,
        owner: str | None = None,
    ) -> Result:
        """Run ``operation`` in a transaction of its own, as if nothing else were written meanwhile;

        returns when it is on disk. It does nothing but run statements, because it may be run again.
        ``then`` is called in another thread, after the commit and before anyone else can write.
        With ``owner``, a database that many share lets it touch nothing of anybody else.
        """
        ...

    def write_together(self, kind: Together[Order, Result], order: Order) -> "Future[Result]":
        """The same for one of a kind, which may share its statements with others.

        Who gives up waiting does not undo the write.
        """
        ...


class Changes(Looking):
    """Writes through the one writer of the process, and looks beside it."""

    _writer: Writing
    _leases: LeaseClock
    _where: Mapping[str, str] = MappingProxyType({})
    """What the start of a task says of where that is, in a record of many machines."""

    def now(self) -> Instant:
        return self._leases.time_of_day()

    async def _change(
        self, name: str, kind: EventKind, data: dict[str, Any], /, **values: Any
    ) -> Task | None:
        """A guarded statement on one task, and the event that tells of it."""

        def operation(run: Statements) -> Task | None:
            task = run.task(name, **values)
            if task is not None:
                run.add_event(task, kind, data)
            return task

        return await self._writer.write(operation)

    async def _count(self, name: str, /, **values: Any) -> int:
        """How many rows a statement has changed."""
        return await self._writer.write(lambda run: len(run.rows(name, **values)))

    async def _count_of(self, owner: str, name: str, /, **values: Any) -> int:
        """The same, for this owner and within what is theirs."""
        return await self._writer.write(lambda run: len(run.rows(name, **values)), owner=owner)
