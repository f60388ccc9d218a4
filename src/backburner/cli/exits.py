"""Exit statuses that are not those of an error; the errors' own are in `model.errors.SPELLINGS`."""

from collections.abc import Iterable

from backburner.model.states import State
from backburner.model.task import Task

DONE = 0
FAILED = 1
NOT_FOUND = 3
STOPPED = 6
TIME_IS_UP = 124
INTERRUPTED = 130
TERMINATED = 143
"""What a shell reports for a program that was asked to end."""
BROKEN_PIPE = 141
"""What a shell reports for a program that ended because nobody reads its output."""


def status_of(task: Task) -> int:
    """What `wait` exits with for a task: its own code where it has one."""
    if not task.state.terminal:
        return TIME_IS_UP
    if task.state is State.CANCELED:
        return STOPPED
    if task.exit_code is not None:
        return task.exit_code
    return DONE if task.state is State.SUCCEEDED else FAILED


def first_not_done(statuses: Iterable[int]) -> int:
    """For several tasks: the first that is not 0, in the order given."""
    return next((status for status in statuses if status != DONE), DONE)
