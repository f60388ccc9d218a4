"""Files that go with a prompt for an agent on another machine: in the record until its end."""

from collections.abc import Sequence

from backburner.model.task import NewTask, Task
from backburner.model.values import value
from backburner.store.record.changes import Changes
from backburner.store.record.creates import Create, create_task
from backburner.store.record.rows import to_json
from backburner.store.record.transaction import Statements


@value
class Attached:
    """One of them."""

    name: str | None
    media_type: str
    data: bytes


class Attachments(Changes):
    """Written with their task, read by whoever carries it out, removed by the database."""

    async def create_with(
        self, task: NewTask, files: Sequence[Attached], *, limit: int, detail: str
    ) -> Task:
        """See Store.create; the files are there with it, or neither is."""
        create = Create(task, to_json(task.spec), limit, None, detail)

        def operation(run: Statements) -> Task:
            created = create_task(run, create)
            for number, each in enumerate(files):
                run.rows(
                    "attachment_put",
                    task=created.seq,
                    number=number,
                    name=each.name,
                    media_type=each.media_type,
                    data=each.data,
                )
            return created

        return await self._writer.write(operation, owner=task.owner)

    async def attachments(self, task_id: str) -> list[Attached]:
        """What goes with it; nothing once it has ended."""
        rows = await self._look(lambda read: read.rows("attachments_of", id=task_id))
        return [Attached(name, media_type, bytes(data)) for name, media_type, data in rows]
