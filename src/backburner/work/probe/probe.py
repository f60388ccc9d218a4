"""What every probe is: a question that is asked again until the answer is yes."""

import asyncio
from typing import Protocol

from backburner.model.values import value


@value
class Answer:
    """What a look has found."""

    ready: bool
    text: str = ""
    """What was seen. Of one that is not ready: what a person should know, else nothing."""


NOT_YET = Answer(ready=False)


class Probe(Protocol):
    """Looks for one thing."""

    lasts: bool
    """Whether it can still be found when the job has ended."""

    async def look(self) -> Answer:
        """Whether it is there now. Never an exception of the outside world."""
        ...

    async def pause(self, seconds: float) -> None:
        """Until it may be worth to look again."""
        ...

    def close(self) -> None:
        """Let go of what the waiting needed."""
        ...


class Polled:
    """Waits by the clock: the kernel tells nobody that another process listens or answers."""

    lasts = False

    async def pause(self, seconds: float) -> None:
        """The time between two looks."""
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Nothing is held."""
