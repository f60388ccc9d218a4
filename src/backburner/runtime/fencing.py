"""Attempts that are over in the record while processes of them still run on this machine.

So it is where the machine, or its worker, was taken for dead. They are ended before anything else:
another machine may carry out the next attempt. What cannot be ended holds up nothing but its own
end, which is tried until it has come to pass.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Collection

from backburner.model.home import Home
from backburner.work.process.tree import Tree, populated

Attempt = tuple[str, int]
"""A task's id, and the number of the attempt."""

_KILL_AGAIN_S = 0.05
_LONGEST_S = 5.0
"""Who is not gone by then is held by the kernel, or is another user's by now."""

_LAST_S = 1.0
"""What is under way gets when its worker leaves."""


class Fencing:
    """The ends of such attempts on one machine, each under way once."""

    def __init__(
        self, home: Home, tree_of: Callable[[str, int], Tree], report: Callable[[str], None]
    ) -> None:
        self._home = home
        self._tree_of = tree_of
        self._report = report
        self._ends: dict[Attempt, asyncio.Task[None]] = {}
        self._leaving = asyncio.Event()

    async def end_others(self, ours: Collection[Attempt]) -> None:
        """End all that runs of attempts of this home that are none of ``ours``.

        Returns when nothing is left, or after a while. A shell that has ended says nothing of what
        it has left behind.
        """
        names: list[str] = []
        with contextlib.suppress(FileNotFoundError):
            names = os.listdir(self._home.tasks)
        attempts = (name.rpartition(".") for name in names)
        others = [
            self._tree_of(task_id, int(attempt))
            for task_id, _, attempt in attempts
            if attempt.isdigit() and (task_id, int(attempt)) not in ours
        ]
        for tree in await asyncio.to_thread(populated, others):
            self._report(f"{tree.task_id}: attempt {tree.attempt} is over, and is ended here")
            self.end_tree(tree)
        if self._ends:
            await asyncio.wait(self._ends.values(), timeout=_LONGEST_S)

    def is_ending(self, attempt: Attempt) -> bool:
        """Whether its end is under way: what is started under its name now would be hit, too."""
        return attempt in self._ends

    def end_tree(self, tree: Tree) -> None:
        """End an attempt of which nothing is known but its signs."""
        self.end((tree.task_id, tree.attempt), lambda: _end(tree, self._report))

    def end(self, attempt: Attempt, work: Callable[[], Awaitable[object]]) -> None:
        """Beside everything else, and again where it fails."""
        if attempt not in self._ends and not self._leaving.is_set():
            self._ends[attempt] = asyncio.create_task(self._until_done(attempt, work))

    async def _until_done(self, attempt: Attempt, work: Callable[[], Awaitable[object]]) -> None:
        task, number = attempt
        try:
            while True:
                try:
                    await work()
                    return
                except Exception as error:  # noqa: BLE001 - it must not run on, whatever that was
                    self._report(f"{task}: attempt {number} could not be ended yet: {error}")
                if self._leaving.is_set():
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LONGEST_S):
                        await self._leaving.wait()
        finally:
            del self._ends[attempt]

    async def close(self) -> None:
        """Let go of what cannot be ended, after a last try."""
        self._leaving.set()
        ends = [*self._ends.values()]
        if ends:
            await asyncio.wait(ends, timeout=_LAST_S)
        for each in ends:
            each.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


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
