"""Being told by the kernel that logs have grown: for the tasks on the screen, and no others."""

import asyncio
from collections.abc import Callable, Iterable

from backburner.cli.top.roster import is_active
from backburner.model.home import Home
from backburner.model.task import Task
from backburner.work.linux import Inotify, Watch


class LogBell:
    """Rings once when a log has grown, and then not before `grown` was asked."""

    def __init__(self, home: Home, ring: Callable[[], None]) -> None:
        self._home = home
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._watches: dict[str, tuple[int, str]] = {}  # path: (number, task)
        self._blind: set[str] = set()
        self._new: set[str] = set()
        self._sizes: dict[str, int] = {}
        try:
            self._inotify: Inotify | None = None if home.shared else Inotify()
        except OSError:
            self._inotify = None

    @property
    def blind(self) -> bool:
        """Whether there are logs of which the kernel does not tell."""
        return bool(self._blind)

    def listen_to(self, tasks: Iterable[Task]) -> None:
        """To these from now on, as far as they run."""
        if self._home.shared:
            self._compare(tasks)
            return
        wanted: dict[str, str] = {}
        for task in tasks:
            if is_active(task) and task.started_at is not None:
                folder = self._home.attempt(task.id, task.attempt)
                wanted[folder.log] = task.id
                if task.spec.get("separate_stderr"):
                    wanted[folder.stderr] = task.id
        if self._inotify is None:
            self._blind = set(wanted.values())
            return
        for path in self._watches.keys() - wanted.keys():
            self._inotify.remove(self._watches.pop(path)[0])
        self._blind.clear()
        for path, task_id in wanted.items():
            if path in self._watches:
                continue
            try:
                self._watches[path] = (self._inotify.add(path, Watch.MODIFY), task_id)
                self._new.add(task_id)  # it may have grown before
            except OSError:  # not there, or no watches left for this user
                self._blind.add(task_id)

    def grown(self) -> set[str]:
        """The tasks whose logs may have grown since the last call."""
        if self._inotify is None:
            new, self._new = self._new, set()
            return new | self._blind
        numbers = {number for number, _ in self._inotify.drain()}
        self._loop.add_reader(self._inotify.fileno(), self._rung)
        lost = -1 in numbers  # the queue overflowed: any of them may have grown
        told = {task for number, task in self._watches.values() if lost or number in numbers}
        new, self._new = self._new, set()
        return told | new | self._blind

    def _compare(self, tasks: Iterable[Task]) -> None:
        """Of what runs on other machines the record has the size, and tells when it changes."""
        sizes = {task.id: task.output_bytes for task in tasks}
        self._new |= {name for name, size in sizes.items() if self._sizes.get(name) != size}
        self._sizes = sizes

    def _rung(self) -> None:
        assert self._inotify is not None
        self._loop.remove_reader(self._inotify.fileno())  # deaf until somebody looks
        self._ring()

    def close(self) -> None:
        """Let go of everything."""
        if self._inotify is not None:
            self._loop.remove_reader(self._inotify.fileno())
            self._inotify.close()
            self._inotify = None
