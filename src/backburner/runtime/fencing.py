"""Attempts that are over in the record while their processes still run on this machine.

So it is where the machine, or its worker, was taken for dead. They are ended before anything else:
another machine may carry out the next attempt.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection

from backburner.model.home import Home
from backburner.work.process import condition
from backburner.work.process.mark import mark_for
from backburner.work.process.tree import Tree

_KILL_AGAIN_S = 0.05


async def end_fenced_off(
    home: Home, ours: Collection[tuple[str, int]], report: Callable[[str], None]
) -> None:
    """End every job of this home that is none of ``ours``: ids and attempts."""
    names: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        names = os.listdir(home.tasks)
    for name in names:
        task_id, _, attempt = name.rpartition(".")
        if not attempt.isdigit() or (task_id, int(attempt)) in ours:
            continue
        if isinstance(condition.inspect(home.attempt(task_id, int(attempt))), condition.Alive):
            report(f"{task_id}: attempt {attempt} is over, and is ended here")
            await _end(home, task_id, int(attempt))


async def _end(home: Home, task_id: str, attempt: int) -> None:
    root = str(home.root)
    tree = Tree(root, task_id, mark_for(root, task_id, attempt), None)
    while tree.members():
        for fd in tree.kill():
            os.close(fd)
        await asyncio.sleep(_KILL_AGAIN_S)
