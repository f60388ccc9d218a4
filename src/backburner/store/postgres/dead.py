"""What nodes had that have died, as another one sees to it.

Nothing is done to what somebody else has by now, under the same attempt, nor to anything of a node
that was heard of since it was seen to be silent.
"""

from collections.abc import Awaitable, Callable

from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.task import Task
from backburner.store.engine import Job, Silence
from backburner.store.postgres.engine import TASK, Procrastinate
from backburner.store.record import transaction
from backburner.store.record.changes import Changes
from backburner.store.record.ends import End, end_task
from backburner.store.record.tasks import requeue


def give_back(run: transaction.Statements, job: Job, node: str | None) -> bool:
    """What ``node`` may have taken, and nobody has begun. False where it is elsewhere by now."""
    if not run.rows("task_let_in_again", id=job.task, attempt=job.attempt, node=node):
        return False
    run.rows("jobs_close", name=TASK, task=job.task, attempt=job.attempt)
    return True


def _lives(run: transaction.Statements, seen: Silence) -> bool:
    """Whether whoever was seen silent has been heard of since; none of whom we know better."""
    silent_s = float(seen.silent_s)
    return silent_s > 0 and bool(run.rows("node_lives", node=seen.node, silent_s=silent_s))


class LeftByTheDead(Changes):
    """A part of what a node can ask and say."""

    def _finish(
        self, task_id: str, attempt: int, end: Callable[[], Awaitable[Task | None]]
    ) -> Awaitable[Task | None]:
        """Write an end, with all that goes before it."""
        raise NotImplementedError

    async def silent(self, silent_s: float, contact_s: float) -> list[Silence]:
        """What is with nodes that are dead, or may be soon; see Engine.silent."""
        return await self._look(lambda read: Procrastinate().silent(read, silent_s, contact_s))

    async def give_back_from(self, seen: Silence) -> bool:
        """What nobody has begun goes to the engine anew. False where somebody has it by now."""
        return await self._writer.write(
            lambda run: not _lives(run, seen) and give_back(run, seen.job, seen.node)
        )

    async def requeue_from(self, seen: Silence, reason: str) -> bool:
        """It is taken up again with the next attempt; see `Store.requeue`."""

        def operation(run: transaction.Statements) -> bool:
            job = seen.job
            if _lives(run, seen):
                return False
            if not run.rows("task_is_with", id=job.task, attempt=job.attempt, node=seen.node):
                return False
            return requeue(run, job.task, job.attempt, reason) is not None

        return await self._writer.write(operation)

    async def finish_from(self, seen: Silence, ending: Ending) -> bool:
        """It ends; see `Store.finish`."""
        job = seen.job
        end = End(job.task, job.attempt, ending, node=seen.node)

        def operation(run: transaction.Statements) -> Task | None:
            return None if _lives(run, seen) else end_task(run, end)

        ended = self._finish(job.task, job.attempt, lambda: self._writer.write(operation))
        return await ended is not None

    async def give_up_leftovers_of(self, seen: Silence, reason: str) -> bool:
        """Nobody waits for what it has left behind any more; whether that runs on is not known."""
        job = seen.job

        def operation(run: transaction.Statements) -> bool:
            if _lives(run, seen):
                return False
            task = run.task(
                "task_gives_up_leftovers", id=job.task, attempt=job.attempt, node=seen.node
            )
            if task is not None:
                run.add_event(task, EventKind.LEFTOVERS, {"leftovers": 0, "reason": reason})
            return task is not None

        return await self._writer.write(operation)

    async def close_job(self, job: Job) -> None:
        """The engine need not wait for a worker that is dead."""
        await self._count("jobs_close", name=TASK, task=job.task, attempt=job.attempt)
