"""Scripts that take part, for the tests: what they call our program, and asking for a task."""

import shlex
import sys

from backburner import Question, Task
from tests.waiting import wait_until_async

PROGRAM = f"{shlex.quote(sys.executable)} -m backburner.cli"
"""As a job calls it, whatever its PATH is."""


async def open_questions(task: Task, count: int = 1) -> list[Question]:
    """The questions of a task, once so many are open."""

    async def enough() -> list[Question] | None:
        found = [each for each in await task.questions() if each.open]
        return found if len(found) == count else None

    return await wait_until_async(enough, message=f"it has not asked {count} questions")
