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
_LONGEST_S = 5.0
"""Who is not gone by then is held by the kernel, or is another user's by now."""


async def end_fenced_off(
    home: Home,
    ours: Collection[tuple[str, int]],
    tree_of: Callable[[str, int], Tree],
    report: Callable[[str], None],
) -> None:
    """End all that runs of attempts of this home that are none of ``ours`` (ids and numbers).

    Returns when nothing is left. A shell that has ended says nothing of what it has left behind.
    """
    names: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        names = os.listdir(home.tasks)
    attempts = (name.rpartition(".") for name in names)
    others = [
        tree_of(task_id, int(attempt))
        for task_id, _, attempt in attempts
        if attempt.isdigit() and (task_id, int(attempt)) not in ours
    ]
    running = await asyncio.to_thread(populated, others)
    for tree in running:
        report(f"{tree.task_id}: attempt {tree.attempt} is over, and is ended here")
    await asyncio.gather(*(_end(tree, report) for tree in running))


async def _end(tree: Tree, report: Callable[[str], None]) -> None:
    pause = _KILL_AGAIN_S
    told = False
    while left := await asyncio.to_thread(tree.members):
        if pause == _LONGEST_S and not told:
            pids = ", ".join(map(str, left))
            report(f"{tree.task_id}: of attempt {tree.attempt} this cannot be ended yet: {pids}")
            told = True
        for fd in await asyncio.to_thread(tree.kill):
            os.close(fd)
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_S)
    tree.dissolve()
