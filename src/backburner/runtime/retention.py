"""Forgetting: ended tasks go after a while, with their folders, events and signals."""

import os
import shutil
import time

from backburner.model.clock import Instant
from backburner.model.home import Home
from backburner.store.protocol import Scope, Store
from backburner.work import handover

_BATCH = 200
_YOUNG_S = 3600.0


async def prune(store: Store, home: Home, before: Instant, scope: Scope | None = None) -> int:
    """Forget every task that ended before this time. Answers how many.

    The record goes first: a crash in between leaves a folder without a task, which the sweep of
    the next prune removes, and never a task without its output.
    """
    count = 0
    while tasks := await store.prunable(before, scope, _BATCH):
        forgotten = await store.forget([task.id for task in tasks])
        for task in tasks:
            for attempt in range(1, task.attempt + 1):
                shutil.rmtree(home.attempt(task.id, attempt).path, ignore_errors=True)
        count += forgotten
        if not forgotten:
            break
    await _sweep(store, home)
    return count


async def _sweep(store: Store, home: Home) -> None:
    """Remove what no task owns: folders of forgotten tasks, launches of starts that never came."""
    for path in _old_entries(home.tasks):
        task_id = os.path.basename(path).partition(".")[0]
        if await store.get(task_id) is None:
            shutil.rmtree(path, ignore_errors=True)
    for piece in handover.pieces(home):
        if piece.age_s > _YOUNG_S:
            task = await store.get(piece.task)
            if task is None or task.state.terminal or task.hand_over != piece.name:
                handover.discard(home, piece.task, piece.name)
    handover.tidy(home)


def _old_entries(folder: str) -> list[str]:
    """Entries are made shortly before their task is written: a young one is not an orphan."""
    try:
        with os.scandir(folder) as entries:
            return [
                entry.path for entry in entries if time.time() - entry.stat().st_mtime > _YOUNG_S
            ]
    except FileNotFoundError:
        return []
