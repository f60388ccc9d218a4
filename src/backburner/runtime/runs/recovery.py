"""What becomes of runs whose worker has died (E11): taken up again where safe, else orphaned.

Done by the keeper, who is the only one. A dead worker holds its lock no longer, so nothing is
guessed from a clock. The attempt is raised before anyone takes the run up: whatever the old one
might still write is refused by the record.
"""

import contextlib
import os
from collections.abc import Callable

from backburner.model.ending import Ending
from backburner.model.errors import StoreClosed
from backburner.model.home import Home
from backburner.model.states import ErrorKind, Kind
from backburner.model.task import Task
from backburner.model.worker import ATTEMPTS_MAX, Worker
from backburner.runtime.children import stop_children, stop_left_children
from backburner.runtime.runs.archive import put_files
from backburner.runtime.runs.lock import is_alive
from backburner.runtime.scribe import insist
from backburner.runtime.unstarted import leave_result
from backburner.store.protocol import Store
from backburner.work import handover
from backburner.work.process import condition
from backburner.work.process.identity import boot_id


async def recover(store: Store, home: Home, report: Callable[[str], None]) -> None:
    """See to what dead workers have left."""
    for worker in await store.workers():
        if is_alive(home, worker.id):
            continue
        reason = (
            "the application that carried it out has died"
            if worker.boot_id == boot_id()
            else "the machine was restarted while it ran"
        )
        for task in await store.tasks_of_worker(worker.id):
            report(f"{task.id}: {reason}")
            await let_go(store, home, task, worker, reason)
        handover.discard(home, worker.id, worker.hand_over)
        with contextlib.suppress(OSError):
            os.unlink(home.worker_lock(worker.id))
        await store.remove_worker(worker.id)
        await stop_left_children(store, home)  # of agents that ended with it


async def let_go(store: Store, home: Home, task: Task, worker: Worker, reason: str) -> None:
    """This worker carries the run out no more: record its end, or let another take it up."""
    now = await store.get(task.id)  # somebody may have asked for its end meanwhile
    if now is None or now.attempt != task.attempt or now.state.terminal:
        return
    task = now
    folder = home.attempt(task.id, task.attempt)
    found = condition.inspect(folder)
    if isinstance(found, condition.Settled):  # it had ended, and only the record did not say so
        await insist(lambda: store.finish(task.id, task.attempt, found.ending), _nothing)
        return
    refused = why_not_again(task)
    if refused is None:
        hand_over = _copied_hand_over(home, worker, task)
        try:
            again = await insist(
                lambda: store.requeue(task.id, task.attempt, reason, hand_over=hand_over), _nothing
            )
        except StoreClosed:  # nothing was written
            handover.discard(home, task.id, hand_over)
            raise
        if again is None or again.state.terminal:  # somebody has asked for its end
            handover.discard(home, task.id, hand_over)
        if again is not None:
            leave_result(home, again)
        return
    ending = (
        Ending.canceled()
        if task.stop is not None
        else Ending.failed(ErrorKind.ORPHANED, f"{reason}; {refused}")
    )
    with contextlib.suppress(OSError):  # a full disk; the record has it too
        put_files(folder, ending.document())
    await insist(lambda: store.finish(task.id, task.attempt, ending), _nothing)
    await insist(lambda: stop_children(store, home, task), _nothing)


def why_not_again(task: Task) -> str | None:
    """Why this task cannot be taken up again; None where it can."""
    if task.kind is not Kind.TOOL:
        return f"{'an agent' if task.kind is Kind.AGENT else 'it'} is not started twice"
    if not (task.spec.get("idempotent") or task.spec.get("readonly")):
        return "its tool may not run twice: it is neither idempotent nor readonly"
    if task.spec.get("redacted"):
        return "its arguments held secrets, which are not kept"
    if task.attempt >= ATTEMPTS_MAX:
        return f"this was attempt {task.attempt} of {ATTEMPTS_MAX}"
    return None


def _copied_hand_over(home: Home, worker: Worker, task: Task) -> str | None:
    """What the keeper can start it with, where its tool is importable."""
    if worker.hand_over is None or not task.spec.get("reference") or home.shared:
        return None
    try:
        return handover.leave(home, task.id, handover.take(home, worker.id, worker.hand_over))
    except (OSError, ValueError, TypeError):
        return None


def _nothing(_: str) -> None:
    """The keeper's log has heard of it."""
