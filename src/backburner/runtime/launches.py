"""What starts are left with: taken by the keeper, and discarded where nobody needs it any more.

An environment that no start will use must not stay.
"""

import resource
from collections.abc import Callable
from dataclasses import replace

from backburner.model.errors import UsageError
from backburner.model.home import Home
from backburner.model.task import Task
from backburner.runtime.unstarted import leave_result
from backburner.store.protocol import Store
from backburner.work import handover, shell
from backburner.work.process.wrapper import Launch, problem
from backburner.work.python import with_request

OwnLaunch = Callable[[Task], Launch | None]
"""How a machine starts what it was asked for by name, and given nothing to start with: its own
command-line agents."""

YOUNG_S = 3600.0
"""What was left shortly ago may belong to a task that is about to be written."""


async def discard_unneeded(store: Store, home: Home) -> None:
    """Discard what belongs to tasks and schedules that have ended, whose enders died before doing

    so, and what has belonged to none for long.
    """
    workers = {worker.hand_over for worker in await store.workers()}
    for piece in handover.pieces(home):
        if piece.name in workers:
            continue
        task = await store.get(piece.task)
        if task is None or task.hand_over != piece.name:
            schedule = await store.schedule(piece.task)
            if schedule is not None and schedule.hand_over == piece.name:
                unneeded = schedule.state.ended
            else:
                unneeded = piece.age_s > YOUNG_S
        else:
            unneeded = task.state.terminal
            leave_result(home, task)  # whoever stopped it may have died before doing so
        if unneeded:
            handover.discard(home, piece.task, piece.name)


async def left_for(store: Store, home: Home, subject: str, name: str) -> Launch:
    """What was left for a task, or a schedule. OSError, ValueError or TypeError where it is gone or

    broken.
    """
    if not home.shared:
        return handover.take(home, subject, name)
    kept = await store.secret(name)
    if kept is None:
        raise FileNotFoundError
    try:
        return handover.opened(kept, subject)
    except UsageError as error:
        raise ValueError(str(error)) from None


def _launch_here(task: Task, own: OwnLaunch) -> Launch | None:
    try:
        launch = own(task)
    except UsageError as error:
        raise ValueError(str(error)) from None
    if launch is None:
        return None
    return replace(launch, environment=handover.environment_here(launch.given))


async def launch_of(store: Store, home: Home, task: Task, own: OwnLaunch) -> Launch:
    """How this attempt is started. OSError, ValueError or TypeError where that is not known."""
    left = _launch_here(task, own) if task.hand_over is None else None
    try:
        left = left or await left_for(store, home, task.id, task.hand_over or "")
    except FileNotFoundError:
        raise ValueError("what it was to be started with is gone") from None
    launch = with_request(left, task.kind, task.spec)
    if home.shared and (reason := problem(launch)) is not None:
        raise ValueError(reason)  # nobody could know before: it was started on another machine
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return replace(
        launch,
        environment=shell.job_environment(launch, home, task),
        open_files=min(launch.open_files, most),
    )
