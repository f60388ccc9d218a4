"""How much of a log is kept, and what bounding it came to. Pure values."""

from backburner.model.limits import Settings
from backburner.model.values import value

_DEFAULTS = Settings()


@value
class LogBounds:
    """The first and the last part of a stream that are kept, in bytes (E6)."""

    head: int = _DEFAULTS.log_head
    tail: int = _DEFAULTS.log_tail
    slack: int = 256 * 1024
    """While the job runs, nothing is freed for less: a call for every few lines would cost more
    than the blocks are worth."""

    def __post_init__(self) -> None:
        if min(self.head, self.tail, self.slack) < 0:
            raise ValueError(f"the bounds of a log cannot be negative: {self}")

    @property
    def most(self) -> int:
        """What a bounded log holds at most between two looks at it, if nothing is in a hurry."""
        return self.head + self.tail + self.slack


@value
class BoundResult:
    """What is known of a stream after a look at it."""

    total: int
    """Bytes that the job has written."""
    dropped: int
    """Bytes of those that are gone for good."""
    copying: bool = False
    """The file system cannot free the middle of a file: the log is copied and cut instead."""
