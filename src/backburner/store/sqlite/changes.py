"""What the changes of every noun share: one operation is one transaction of the writer."""

from typing import Any

from backburner.model.events import EventKind
from backburner.model.task import Task
from backburner.store.sqlite.reader import Reader
from backburner.store.sqlite.transaction import Statements
from backburner.store.sqlite.writer import Writer


class Changes:
    """Writes through the one writer of the process, and reads beside it."""

    _writer: Writer
    _read: Reader
    _boot_id: str

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
