"""Forgetting: ended tasks go after a while, with their folders, events and signals."""

import os
import shutil

from backburner.model.clock import Instant
from backburner.model.home import Home
from backburner.store.protocol import Scope, Store

_BATCH = 200


async def prune(store: Store, home: Home, before: Instant, scope: Scope | None = None) -> int:
    """Forget every task that ended before this time. Answers how many.

    The record goes first: a crash in between leaves a folder without a task, which the sweep of
    the next prune removes, and never a task without its output.
    """
    count = 0
    while tasks := await store.prunable(before, scope, _BATCH):
        forgotten = await store.forget([task.id for task in tasks])
        for task in tasks:
            shutil.rmtree(home.task(task.id), ignore_errors=True)
        count += forgotten
        if not forgotten:
            break
    await _sweep(store, home)
    return count


async def _sweep(store: Store, home: Home) -> None:
    """Remove folders that no task owns."""
    try:
        names = os.listdir(home.tasks)
    except FileNotFoundError:
        return
    for name in names:
        if await store.get(name) is None and _is_old(home.task(name)):
            shutil.rmtree(home.task(name), ignore_errors=True)


def _is_old(path: str) -> bool:
    """A folder is made shortly before its task is written: a young one is not an orphan."""
    import time

    try:
        return time.time() - os.stat(path).st_mtime > 3600  # noqa: PLR2004 - an hour is long enough
    except OSError:
        return False
