"""When a task may start: after others, in a queue, before others, again after a failure."""

from collections.abc import Collection
from typing import Any, TypeGuard

from backburner.model.clock import Instant, rfc3339
from backburner.model.ending import Ending
from backburner.model.errors import NoSuchQueue, UsageError
from backburner.model.states import ErrorKind
from backburner.model.values import value

FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 300.0
"""Each further try waits twice as long as the one before, up to this."""

RETRIES_MAX = 1000
AFTER_MAX = 100
WIDTH_MAX = 10_000
RUNNING_MAX = 1_000_000
"""Bounds against mistakes; nobody needs more."""

LOWEST, HIGHEST = -10, 10
"""Of priorities: steps that people can tell apart, and few enough to look at one by one."""

RETRIED = frozenset(ErrorKind) - {ErrorKind.SPAWN}
"""Failures that a further attempt may mend. What cannot be started will not start then either."""


@value
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
    priority: int = 0
    """Of what waits beside each other the highest goes first, then the oldest."""

    def __post_init__(self) -> None:
        if not _is_whole(self.retries) or not 0 <= self.retries <= RETRIES_MAX:
            raise UsageError(
                f"{self.retries} cannot be a number of retries",
                remedy=f"give a number from 0 to {RETRIES_MAX}",
            )
        check_priority(self.priority)
        if not all(isinstance(each, str) for each in self.after):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("a task is named by its id", remedy='give after="bg_…", or a list')
        if len(self.after) > AFTER_MAX:
            raise UsageError(
                f"a task can wait for {AFTER_MAX} others, and not for {len(self.after)}",
                remedy="let one task wait for some of them, and this one for that",
            )
        if self.after_failure and not self.after:
            raise UsageError(
                "after_failure says what to do when another task fails, and there is none",
                remedy="say with after which task that is",
            )


def _is_whole(number: object) -> TypeGuard[int]:
    return isinstance(number, int) and not isinstance(number, bool)


def check_priority(priority: object) -> None:
    """UsageError where this can be no priority."""
    if not _is_whole(priority) or not LOWEST <= priority <= HIGHEST:
        raise UsageError(
            f"{priority!r} cannot be a priority",
            remedy=f"give a number from {LOWEST} to {HIGHEST}; 0 is the usual one",
        )


NO_QUEUE = "default"
"""Under which workers take tasks that are in no queue."""

ANY_TIME = Order()
"""Start at once, and try once."""


@value
class Queue:
    """A line that tasks wait in."""

    name: str
    width: int
    """So many of its tasks run at once."""
    paused: bool = False
    """What runs goes on; nothing new is started."""
    waiting: int = 0
    running: int = 0

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.name,
            "width": self.width,
            "paused": self.paused,
            "waiting": self.waiting,
            "running": self.running,
        }


@value
class Wait:
    """What keeps a queued task from starting; of several reasons all are given."""

    after: tuple[str, ...] = ()
    """Tasks that have not ended."""
    not_before: Instant | None = None
    queue: str | None = None
    paused: bool = False
    place: int | None = None
    """In its queue: 1 is the next to start. None while it waits for something else."""
    owner_limit: int | None = None
    """So many tasks of its owner run, and no more may."""
    unserved: str | None = None
    """No worker that lives takes from this queue; `default` is where work is that names none."""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "after": list(self.after),
            "not_before": None if self.not_before is None else rfc3339(self.not_before),
            "queue": self.queue,
            "paused": self.paused,
            "place": self.place,
            "owner_limit": self.owner_limit,
            "unserved": self.unserved,
        }


def retry_delay_s(failures: int) -> float:
    """How long to wait after so many failures in a row."""
    return min(FIRST_RETRY_S * 2 ** (failures - 1), LONGEST_RETRY_S)


def may_try_again(ending: Ending, retries_left: int) -> bool:
    """Whether a further attempt follows this ending."""
    return retries_left > 0 and ending.error is not None and ending.error.kind in RETRIED


def check_queue(name: str, width: int) -> None:
    """UsageError where this can be no queue."""
    from backburner.model import ids  # not for everyone who lists tasks: it loads cryptography

    if not ids.is_valid(name):
        raise UsageError(
            f"{name!r} cannot be the name of a queue",
            remedy="use letters, digits, - and _, at most 64, a letter or digit first",
        )
    if name == NO_QUEUE:
        raise UsageError(
            f"{name} is what tasks without a queue are in, and is as wide as there are places",
            remedy="give the queue another name",
        )
    if not 1 <= width <= WIDTH_MAX:
        raise UsageError(
            f"a queue cannot be {width} wide", remedy=f"give a width from 1 to {WIDTH_MAX}"
        )


@value
class OwnerLimit:
    """How many tasks of an owner may run at once, on all machines together."""

    owner: str | None
    """None stands for every owner that has no limit of its own."""
    limit: int
    running: int = 0
    waiting: int = 0

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "owner": self.owner,
            "limit": self.limit,
            "running": self.running,
            "waiting": self.waiting,
        }


def check_owner_limit(limit: int | None) -> None:
    """UsageError where no owner can have this limit; None is none."""
    if limit is not None and (not _is_whole(limit) or not 1 <= limit <= RUNNING_MAX):
        raise UsageError(
            f"{limit!r} cannot be a number of running tasks",
            remedy=f"give a number from 1 to {RUNNING_MAX}, or None for no limit",
        )


def no_such_queue(name: str, known: Collection[str]) -> NoSuchQueue:
    """A queue that is not there, beside those that are."""
    if name == NO_QUEUE:
        return NoSuchQueue(
            f"{name!r} is where work goes that names no queue", remedy="leave the queue out"
        )
    make = "backburner queue set NAME --width 2 makes one"
    remedy = f"the queues are: {', '.join(sorted(known))}; {make}" if known else make
    return NoSuchQueue(f"there is no queue {name!r}", remedy=remedy)
