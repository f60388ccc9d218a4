"""The lines that tasks wait in: the queues, and the one of those that are in none."""

from dataclasses import replace

from backburner.model.home import Home
from backburner.model.order import Queue
from backburner.model.states import ACTIVE, State
from backburner.model.values import value
from backburner.runtime.carriers import carriers
from backburner.store.protocol import Scope, Store

NO_QUEUE = "default"
"""What workers call the tasks that are in no queue."""

_MOST = 5000
"""Tasks of one caller that are counted."""


@value
class Line:
    """One of them."""

    queue: Queue
    """Of tasks in no queue, without a name and a width."""
    workers: int | None
    """How many that live take tasks of it; None where the keeper of a home does."""


async def lines(store: Store, home: Home, scope: Scope | None) -> list[Line]:
    """Those without a queue first, then by name; counted are all tasks, or those of a caller."""
    known = await store.queues()
    waiting, running = await store.unqueued()
    found = [Queue("", 0, waiting=waiting, running=running), *known]
    if scope is not None:
        found = await _own(store, scope, found)
    if not home.shared:
        return [Line(queue, None) for queue in found]
    taking = [each for each in await carriers(store, home) if each.alive and not each.draining]
    return [
        Line(queue, sum((queue.name or NO_QUEUE) in each.queues for each in taking))
        for queue in found
    ]


async def _own(store: Store, scope: Scope, queues: list[Queue]) -> list[Queue]:
    """The same with the tasks of one caller alone: how many others wait is not theirs to know."""
    tasks = await store.newest(scope, limit=_MOST, states=ACTIVE)
    counts: dict[tuple[str, bool], int] = {}
    for task in tasks:
        key = (task.queue or "", task.state is State.QUEUED)
        counts[key] = counts.get(key, 0) + 1
    return [
        replace(
            queue,
            waiting=counts.get((queue.name, True), 0),
            running=counts.get((queue.name, False), 0),
        )
        for queue in queues
    ]
