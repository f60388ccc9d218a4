"""When a task may start and whether it is tried again: what a worker asks before it acts."""

from collections.abc import Iterable
from dataclasses import replace

from backburner.model import clock
from backburner.model.clock import Instant
from backburner.model.ending import Ending, TaskError
from backburner.model.order import Order, may_try_again, retry_delay_s
from backburner.model.states import ErrorKind, State
from backburner.model.task import Task
from backburner.model.telling import how_it_ended
from backburner.store.protocol import Store


async def what_keeps_it(store: Store, task: Task) -> Ending | None:
    """The ending of a task that must not start any more, because of how another one ended."""
    if not task.after or task.after_failure:
        return None
    if task.attempt > 1:
        return None  # it was its turn before; what it came after may be forgotten by now
    found = [await store.get(task_id) for task_id in task.after]
    missing = [task_id for task_id, other in zip(task.after, found, strict=True) if other is None]
    if missing:
        return _in_vain(f"{missing[0]}, which it was to start after, is gone")
    return failed_before(other for other in found if other is not None)


def failed_before(others: Iterable[Task]) -> Ending | None:
    """The same, from the tasks that it comes after."""
    for other in others:
        if other.state.terminal and other.state is not State.SUCCEEDED:
            ended = how_it_ended(Ending(other.state, other.error, other.exit_code))
            return _in_vain(f"{other.id}, which it was to start after, {ended}")
    return None


def _in_vain(reason: str) -> Ending:
    return Ending.failed(ErrorKind.SPAWN, reason)


def is_tried_again(task: Task, ending: Ending) -> bool:
    """Whether a further attempt follows, unless somebody asks for the end before."""
    return may_try_again(ending, task.retries_left)


def next_try_at(task: Task, now: Instant) -> Instant:
    """When the attempt after the present one is made, which has just failed."""
    return now + round(retry_delay_s(task.failures + 1) * clock.SECOND)


def last_of_several(task: Task, ending: Ending) -> Ending:
    """The ending of an attempt as that of its task: a failure says how often it was tried."""
    error = ending.error
    if error is None or not task.failures:
        return ending
    said = f"{error.message} (tried {task.failures + 1} times)"
    return replace(ending, error=TaskError(error.kind, said))


def order_again(task: Task) -> Order:
    """For the same command once more: its queue, priority and retries, and no other task to wait

    for.
    """
    retries = task.retries_left + task.failures
    return Order(queue=task.queue, retries=retries, priority=task.priority)
