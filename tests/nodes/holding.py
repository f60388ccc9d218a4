"""What tests know of tools that hold until they are let go: who offers them, and what has begun."""

from pathlib import Path

from backburner import Session

SHOP = ("--tools", "tests.nodes.shop")
SOON = {"BACKBURNER_DEAD_AFTER_S": "2"}


def begun(folder: Path) -> int:
    return len(list(folder.glob("began-*")))


async def told(session: Session) -> list[str]:
    """What it is told, and acknowledges."""
    found: list[str] = []
    async for signal in session.signals(follow=False):
        found.append(f"{signal.record.kind} {signal.task}")
        await signal.ack()
    return found
