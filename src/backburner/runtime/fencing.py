"""Attempts that are over in the record while processes of them still run on this machine.

So it is where the machine, or its worker, was taken for dead. They are ended before anything else:
another machine may carry out the next attempt.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection

from backburner.model.home import Home
from backburner.work.process.tree import Tree, populated

_KILL_AGAIN_S = 0.05


async def end_fenced_off(
    home: Home,
    ours: Collection[tuple[str, int]],
    tree_of: Callable[[str, int], Tree],
    report: Callable[[str], None],
) -> None:
    """End all that runs of attempts of this home that are none of ``ours``: ids and numbers.

    A shell that has ended says nothing of what it has left behind.
    """
    names: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        names = os.listdir(home.tasks)
    others = {
        tree_of(task_id, int(attempt)): attempt
        for task_id, _, attempt in (name.rpartition(".") for name in names)
        if attempt.isdigit() and (task_id, int(attempt)) not in ours
    }
    for tree in await asyncio.to_thread(populated, others):
        report(f"{tree.task_id}: attempt {others[tree]} is over, and is ended here")
        await _end(tree)


async def _end(tree: Tree) -> None:
    while tree.members():
        for fd in tree.kill():
            os.close(fd)
        await asyncio.sleep(_KILL_AGAIN_S)
    tree.dissolve()
