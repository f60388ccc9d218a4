"""Commands that are about to run: each behind a wrapper in its cgroup, with its limits, that waits
for the word.

Nothing of a command has run before `Waiting.go`, so who may not start it after all gives it up
without a trace.
"""

import hashlib
import os
from collections.abc import Iterable

from backburner.model import clock
from backburner.model.allowance import UNLIMITED, Allowance
from backburner.model.home import Home
from backburner.model.task import Place, Task
from backburner.model.values import value
from backburner.runtime.allowance import Allowances
from backburner.work.process import cgroup, wrapper
from backburner.work.process.identity import boot_id
from backburner.work.process.launcher import Launcher
from backburner.work.process.tree import Tree


@value
class Waiting:
    """A wrapper that waits, and where it does."""

    started: wrapper.Started
    place: Place

    def go(self) -> None:
        """It is on record: run."""
        self.started.go()


class Starter:
    """Starts the commands of one home, and gives back what they had."""

    def __init__(self, home: Home, *, cgroups: bool) -> None:
        self._home = home
        key = hashlib.blake2b(os.fsencode(home.root), digest_size=6).hexdigest()
        self._groups = cgroup.family_folder(key) if cgroups else None
        self._allowances = Allowances(key, self._groups, cgroups=cgroups)
        self._launcher = Launcher()

    def tree(self, task_id: str, attempt: int) -> Tree:
        """Whatever such an attempt would have started."""
        group = f"{self._groups}/{task_id}.{attempt}" if self._groups else None
        return Tree(str(self._home.root), task_id, attempt, group)

    def start(self, task: Task, launch: wrapper.Launch) -> Waiting:
        """OSError, ValueError or TypeError where that cannot be; then nothing is left of it."""
        folder = self._home.attempt(task.id, task.attempt)
        tree = self.tree(task.id, task.attempt)
        group = tree.cgroup
        if group is not None and not cgroup.make(group):
            group = None
        try:
            allowed = Allowance.of(task.spec)
            launcher = self._launcher if allowed == UNLIMITED else None  # it is larger than a shell
            started = wrapper.start(folder, launch, mark=tree.mark, cgroup=group, launcher=launcher)
            memory_group = self._allowances.impose(task, allowed, started, group)
        except (OSError, ValueError, TypeError):
            if group is not None:
                cgroup.remove(group)
            raise
        place = Place(boot_id(), clock.boot_now(), started.pid, group, memory_group)
        return Waiting(started, place)

    def give_up(self, waiting: Waiting) -> None:
        """It is not to run."""
        waiting.started.give_up()
        self.release(waiting.place)
        if waiting.place.cgroup is not None:
            cgroup.remove(waiting.place.cgroup)

    def release(self, place: Place | None) -> None:
        """See Allowances.release."""
        self._allowances.release(place)

    def sweep(self, tasks: Iterable[Task]) -> None:
        """See Allowances.sweep."""
        self._allowances.sweep(tasks)

    def tend(self) -> None:
        """Now and then: have a launcher where one is of use."""
        self._launcher.tend()

    def close(self) -> None:
        """Let go. What runs goes on."""
        self._launcher.close()
        self._allowances.close()
        if self._groups is not None:
            cgroup.remove(self._groups)
