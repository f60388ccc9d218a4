"""Stopping the task of another session of the same owner: that session is asked first (C3).

Until it says yes, whoever wants to stop the task learns nothing of it, not even how it ended. What
belongs to somebody else is not found, in the same words.
"""

import asyncio
import os

from backburner.model.errors import NotAllowed, NotFound, TimeIsUp, UsageError
from backburner.model.questions import Question, is_yes
from backburner.model.task import Task
from backburner.runtime.agents import lineage_of
from backburner.runtime.feed import Feed
from backburner.runtime.outages import endured
from backburner.runtime.tasks import TaskService, check_grace
from backburner.store.protocol import Scope, Store


class Approvals:
    """Stops tasks for a session: its own at once, others of its owner when they agree."""

    def __init__(self, store: Store, feed: Feed, tasks: TaskService) -> None:
        self._store = store
        self._feed = feed
        self._tasks = tasks

    async def stop(
        self, reference: str, scope: Scope, *, grace_s: float, timeout_s: float | None, ask: bool
    ) -> Task:
        """End a task. NotFound; NotAllowed where it was refused; TimeIsUp where nobody answered."""
        if timeout_s is not None and timeout_s <= 0:
            raise UsageError("the time to wait for an answer must be more than 0")
        check_grace(grace_s)
        try:
            own = await self._tasks.find(reference, scope)
        except NotFound:
            # By its whole id only: what a part of one fits would say something of it.
            other = await self._store.get(reference, Scope(scope.owner))
            if other is None or other.state.terminal:
                raise
            if (await lineage_of(self._store, scope)).parent is not None:
                raise  # a sub-agent cannot cancel its parent's, nor ask for it (D8)
        else:
            return await self._tasks.stop(own.id, scope, grace_s=grace_s)
        if ask:
            await self._ask(other, scope, grace_s, timeout_s)
        theirs = Scope(other.owner, other.session)
        return await self._tasks.stop(other.id, theirs, grace_s=grace_s)

    async def _ask(self, task: Task, scope: Scope, grace_s: float, timeout_s: float | None) -> None:
        """Returns when it was allowed."""
        name = f"stop-{os.urandom(8).hex()}"
        asker = scope.session or ""
        text = (
            f"the session {asker!r} wants to stop it. May it? Answer yes or no, "
            f"and to this question: backburner send --question {name} {task.id} yes"
        )
        asking = asyncio.ensure_future(
            self._store.ask_approval(task.id, scope.owner, asker, name, text, grace_s=grace_s)
        )
        try:
            asked = await asyncio.shield(asking)
            if asked is None:
                raise _refused()
            async with asyncio.timeout(timeout_s), self._feed.of_task(task.id) as bell:
                while True:
                    bell.clear()
                    question = await endured(lambda: self._question(task.id, name))
                    if question is None or (not question.open):
                        break
                    if await endured(lambda: self._is_over(task)):
                        break
                    await bell.wait()
        except TimeoutError:
            if await self._withdraw(asking, name):
                raise TimeIsUp(
                    f"nobody allowed it within {timeout_s:g} s",
                    remedy="it goes on; ask again, or stop it in its own session",
                ) from None
            question = await self._question(task.id, name)  # answered at the last moment
        except asyncio.CancelledError:
            await asyncio.shield(self._withdraw(asking, name))
            raise
        if question is None or question.answer is None or not is_yes(question.answer):
            raise _refused()

    async def _withdraw(self, asking: asyncio.Future[Task | None], name: str) -> bool:
        """Nobody waits any more. It may be on disk before whoever asked it was told so."""
        asked = await asking
        return asked is not None and await self._store.withdraw(asked.id, asked.attempt, name)

    async def _question(self, task_id: str, name: str) -> Question | None:
        for question in await self._store.questions(task_id):
            if question.id == name:
                return question
        return None

    async def _is_over(self, task: Task) -> bool:
        now = await self._store.get(task.id)
        return now is None or now.state.terminal


def _refused() -> NotAllowed:
    return NotAllowed(
        "stopping it was not allowed", remedy="it can be stopped in the session that it belongs to"
    )
