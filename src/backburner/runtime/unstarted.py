"""E4: what every ended task has in its folder, for one that ended before it was ever started."""

import contextlib
import os

from backburner.model.ending import Ending
from backburner.model.home import Home
from backburner.model.task import Task
from backburner.runtime.scribe import whole
from backburner.store.protocol import Scope, Store
from backburner.work import handover
from backburner.work.plain_file import open_plain
from backburner.work.process import condition


async def ask_to_stop(
    store: Store, home: Home, task_id: str, scope: Scope, grace_s: float
) -> Task | None:
    """Ask for the end of a task. One that was waiting for its start has ended then.

    Not by halves: whoever is cancelled meanwhile leaves the files all the same.
    """

    async def ask() -> Task | None:
        task = await store.request_stop(task_id, scope, grace_s)
        if task is not None and task.state.terminal and not task.leftovers:
            leave_result(home, task)
            handover.discard(home, task.id, task.hand_over)
        return task

    return await whole(ask())


def leave_result(home: Home, task: Task) -> None:
    """Put `result.json` and an empty log in place, where the task has ended without a start.

    By whoever ends it, by those who have waited for that, and once more by a keeper that was about
    to start it and empties the folder for that.
    """
    if not task.state.terminal or task.started_at is not None:
        return
    folder = home.attempt(task.id, task.attempt)
    if os.path.exists(folder.result):
        return
    error = task.error
    ending = Ending.canceled() if error is None else Ending.failed(error.kind, error.message)
    with contextlib.suppress(OSError):  # a full disk; the record has it too
        condition.settle_unbegun(folder, ending)
        os.close(open_plain(folder.log, os.O_WRONLY | os.O_CREAT))
