"""What tests of sub-agents look at."""

from backburner import Session, Task
from tests.waiting import wait_until_async

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


async def told(session: Session, task: Task) -> list[str]:
    """The kinds of what the session is told about one task."""
    return [each.record.kind.value for each in await session.told() if each.task == task.id]


async def said(task: Task, text: str) -> None:
    """Wait until this is in its log."""

    async def is_there() -> bool:
        return text in (await task.output()).text

    await wait_until_async(is_there)
