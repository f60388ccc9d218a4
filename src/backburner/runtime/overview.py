"""The last hours at a glance: what was there, what failed, and what waits for a person."""

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.questions import Question
from backburner.model.states import ACTIVE, State
from backburner.model.task import Task
from backburner.model.values import value
from backburner.store.protocol import Scope, Store

MOST = 1000
"""Tasks that are shown of each sort."""

_ASKED_ABOUT = 200
"""Tasks whose questions are looked up, those that say that they wait first."""


@value
class Overview:
    """What is there to see."""

    since: Instant
    now: Instant
    tasks: list[Task]
    """Newest first: what has not ended, and what has since then."""
    more: bool
    waiting: list[tuple[Task, Question]]

    @property
    def counts(self) -> dict[State, int]:
        """How many tasks there are in each state."""
        return {state: sum(each.state is state for each in self.tasks) for state in State}

    @property
    def failures(self) -> list[Task]:
        """The last one first."""
        failed = [task for task in self.tasks if task.state is State.FAILED]
        return sorted(failed, key=lambda task: task.finished_at or 0, reverse=True)


async def overview(store: Store, scope: Scope, hours: float) -> Overview:
    """Of the last hours."""
    now = store.now()
    since = now - round(hours * 3600 * clock.SECOND)
    active = await store.newest(scope, limit=MOST + 1, states=ACTIVE)
    ended = await store.ended_since(since, scope, limit=MOST + 1)
    found = {task.id: task for task in (*active[:MOST], *ended[:MOST])}
    return Overview(
        since,
        now,
        sorted(found.values(), key=lambda task: task.seq, reverse=True),
        len(active) > MOST or len(ended) > MOST,
        await _waiting(store, active),
    )


async def _waiting(store: Store, active: list[Task]) -> list[tuple[Task, Question]]:
    first = sorted(active, key=lambda task: task.state is not State.INPUT_REQUIRED)
    waiting = [
        (task, question)
        for task in first[:_ASKED_ABOUT]
        for question in await store.questions(task.id, Scope(task.owner))
        if question.open
    ]
    return sorted(waiting, key=lambda each: each[1].asked_at)
