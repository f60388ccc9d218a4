"""When a task may start: after others, in a queue, again after a failure."""

from dataclasses import dataclass

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 300.0
"""Each further try waits twice as long as the one before, up to this."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a new task has to wait for, and how often it is tried."""

    queue: str | None = None
    """Only so many of this queue run at once; the oldest first."""
    after: tuple[str, ...] = ()
    """Tasks that must have ended before."""
    after_failure: bool = False
    """Start also when one of those did not succeed; else this one fails too."""
    retries: int = 0
    """Further attempts after a failure."""


ANY_TIME = Order()
"""Start at once, and try once."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A line that tasks wait in."""

    name: str
    width: int
    """So many of its tasks run at once."""
    paused: bool = False
    """What runs goes on; nothing new is started."""
    waiting: int = 0
    running: int = 0


def retry_delay_s(failures: int) -> float:
    """How long to wait after so many failures in a row."""
    return min(FIRST_RETRY_S * 2 ** (failures - 1), LONGEST_RETRY_S)
