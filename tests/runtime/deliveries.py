"""Looking at what channels deliver."""

import json
import subprocess
from pathlib import Path
from typing import Any

from backburner import (
    Session,
    SignalState,
    Task,
)
from backburner.model.signals import Signal
from tests.waiting import wait_until_async


async def ended(session: Session, line: str = "true", **options: Any) -> Task:
    """A task that has ended."""
    return await (await session.run(line, **options)).wait(30)


async def pushed(session: Session, channel: str) -> list[Signal]:
    """What goes through a channel, oldest first."""
    return [signal.record for signal in await session.told(channel=channel)]


async def the_push(
    session: Session, channel: str, state: SignalState = SignalState.DELIVERED
) -> Signal:
    """The one delivery through a channel, once it is in this state."""

    async def there() -> Signal | None:
        (signal,) = await pushed(session, channel)
        return signal if signal.state is state else None

    return await wait_until_async(there)


async def all_are(session: Session, channel: str, state: SignalState, *, count: int) -> bool:
    """Whether so many deliveries of a channel are all in this state."""
    found = await pushed(session, channel)
    return len(found) == count and {signal.state for signal in found} == {state}


def lines(path: Path) -> list[Any]:
    """The lines of JSON that a command has written; of the last one there may be half by now."""
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


def files_with(text: str, folder: Path) -> list[str]:
    """Not by reading them here: to close the record would drop the locks of this process."""
    search = ["grep", "-rlaF", text, str(folder)]
    return subprocess.run(search, capture_output=True, text=True, check=False).stdout.split()
