"""Everything that a task has started, and the end of all of it.

A process belongs to an attempt when it is in the attempt's cgroup, carries its mark, or has its
name in its environment: the union, because each sign can be lost in its own way. Signals go through
descriptors that were opened before the signs were read, so a recycled pid is never hit.
"""

import contextlib
import itertools
import os
import signal
from collections.abc import Iterable, Iterator

from backburner.model.values import value
from backburner.work.process import cgroup
from backburner.work.process.identity import is_zombie, open_pidfd, read_proc
from backburner.work.process.mark import Mark, mark_for, mark_of

Name = tuple[str, str, str]
"""Home, task and attempt as an environment has them: ids that people choose may be the same in two
homes."""


@value
class Tree:
    """The processes of one attempt at a task."""

    home: str
    task_id: str
    attempt: int
    cgroup: str | None

    @property
    def mark(self) -> Mark:
        """What each of them carries, where one may be set."""
        return mark_for(self.home, self.task_id, self.attempt)

    def is_populated(self) -> bool:
        """Whether anything of it runs. Asked at every end: only the cgroup where there is one."""
        if self.cgroup is not None:
            return cgroup.is_populated(self.cgroup)
        return bool(self.members())

    def members(self) -> list[int]:
        """The processes that run now, by every sign; those that ended uncollected are left out.

        An empty answer is a proof.
        """
        found: set[int] = set()
        mark = self.mark
        for fresh in _everybody():
            if self.cgroup is not None:
                found.update(cgroup.members(self.cgroup))
            found.update(int(name) for name in fresh if self._carries_sign(name, mark))
            found.discard(os.getpid())
            if alive := [pid for pid in found if not is_zombie(pid)]:
                return sorted(alive)
        return []

    def _carries_sign(self, pid: str, mark: Mark) -> bool:
        carried = mark_of(pid)
        # Who carries another mark is another attempt's, whatever its environment says.
        return carried == mark if carried is not None else bool(_named_by(pid) & self.names)

    @property
    def names(self) -> set[Name]:
        """How the environment of one of them may call it."""
        return {(self.home, self.task_id, number) for number in (str(self.attempt), "")}

    def _still_member(self, pid: int) -> bool:
        if self.cgroup is not None and pid in cgroup.members(self.cgroup):
            return True
        return self._carries_sign(str(pid), self.mark)

    def _opened(self) -> Iterator[int]:
        """A descriptor for each process of the tree; the caller closes them."""
        for pid in self.members():
            fd = open_pidfd(pid)
            if fd is None:
                continue
            if self._still_member(pid):
                yield fd
            else:
                os.close(fd)  # its number was given to somebody else meanwhile

    def send(self, number: signal.Signals) -> list[int]:
        """Signal every process of the tree. Answers descriptors that are readable at their ends."""
        watched: list[int] = []
        for fd in self._opened():
            # Gone, or with raised privileges: the proof at the end will tell.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(fd, number)
            watched.append(fd)
        return watched

    def kill(self) -> list[int]:
        """KILL to everything. Answers descriptors like `send`.

        Stopped first where there is no cgroup, so that nothing forks away between two looks.
        """
        if self.cgroup is not None:
            cgroup.kill(self.cgroup)
        else:
            for fd in self.send(signal.SIGSTOP):
                os.close(fd)
        return self.send(signal.SIGKILL)

    def watch(self) -> list[int]:
        """Descriptors of the processes that run now, readable at their ends."""
        return list(self._opened())

    def dissolve(self) -> None:
        """Nothing is left: give the cgroup back."""
        if self.cgroup is not None:
            cgroup.remove(self.cgroup)


def populated(trees: Iterable[Tree]) -> list[Tree]:
    """Those of which something runs: one look at all processes, however many are asked about."""
    marks: set[Mark] = set()
    names: set[Name] = set()
    for fresh in _everybody():
        for pid in fresh:
            if (mark := mark_of(pid)) is None:
                names |= _named_by(pid)
            elif not is_zombie(int(pid)):
                marks.add(mark)
    return [
        tree
        for tree in trees
        if tree.mark in marks
        or tree.names & names
        or (tree.cgroup is not None and cgroup.is_populated(tree.cgroup))
    ]


def _everybody() -> Iterator[set[str]]:
    """The processes of this machine but for ourselves, in several lists.

    A process may fork and end between our list and our look at it, so it takes a list on which
    there is nobody whom we have not looked at.
    """
    seen = {str(os.getpid())}
    while fresh := {name for name in os.listdir("/proc") if name.isdigit()} - seen:
        seen |= fresh
        yield fresh


def _named_by(pid: str) -> set[Name]:
    """What the environment of a process says that it belongs to: several where it says so more than

    once. An attempt that is not named may be any: this is a sign for those who have lost others.
    """
    environment = read_proc(pid, "environ")
    if b"BACKBURNER_TASK_ID=" not in environment:
        return set()
    said = [line.partition(b"=") for line in environment.split(b"\0")]

    def values(of: str) -> list[str]:
        return [os.fsdecode(value) for name, _, value in said if name == of.encode()]

    homes, tasks = values("BACKBURNER_HOME"), values("BACKBURNER_TASK_ID")
    return set(itertools.product(homes, tasks, values("BACKBURNER_ATTEMPT") or [""]))
