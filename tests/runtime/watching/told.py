"""What a session was told, in short."""

from typing import Any

from backburner import Session, SignalKind, Task
from tests.waiting import wait_until_async


async def told(session: Session, kind: SignalKind) -> list[dict[str, Any]]:
    """The signals of this kind, as JSON, oldest first."""
    signals = [signal.document() for signal in await session.told(limit=1000)]
    return [signal for signal in signals if signal["kind"] == kind.value]


async def texts(session: Session, kind: SignalKind) -> list[str]:
    """What they say after the task's name."""
    return [signal["text"].partition(") ")[2] for signal in await told(session, kind)]


async def until_told(session: Session, kind: SignalKind, count: int = 1) -> list[dict[str, Any]]:
    """The signals of this kind, once there are so many."""

    async def enough() -> list[dict[str, Any]] | None:
        signals = await told(session, kind)
        return signals if len(signals) >= count else None

    return await wait_until_async(enough)


async def events(task: Task, kind: str) -> list[dict[str, Any]]:
    """What its events of this kind say."""
    return [event.data async for event in task.events(follow=False) if event.kind.value == kind]
