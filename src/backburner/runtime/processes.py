"""The processes of a task now, as a tree, with what they take of the machine."""

import contextlib
import time
from typing import Any

import psutil

from backburner.model.home import Home
from backburner.model.task import Task
from backburner.model.values import value
from backburner.work.child.request import is_child, shown_child
from backburner.work.holder.launch import is_holder, shown_holder
from backburner.work.process.tree import Tree

_SAMPLE_S = 0.1
"""How long the use of the processor is measured."""


@value
class ProcessUse:
    """One process."""

    pid: int
    parent: int
    depth: int
    """How far below the task's first process it stands."""
    command: str
    cpu_percent: float
    memory_bytes: int
    seconds: float
    """How long it runs."""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "pid": self.pid,
            "parent": self.parent,
            "command": self.command,
            "cpu_percent": self.cpu_percent,
            "memory_bytes": self.memory_bytes,
            "runtime_s": self.seconds,
        }


def processes_of(home: Home, task: Task) -> list[ProcessUse]:
    """Everything that a task runs, or has left behind; parents before their children."""
    if task.place is None or (task.state.terminal and not task.leftovers):
        return []
    tree = Tree(str(home.root), task.id, task.attempt, task.place.cgroup)
    found: dict[int, psutil.Process] = {}
    for pid in tree.members():
        with contextlib.suppress(psutil.Error):
            found[pid] = psutil.Process(pid)
            found[pid].cpu_percent()  # begins the measurement
    if found:
        time.sleep(_SAMPLE_S)
    parents: dict[int, int] = {}
    for pid, process in found.items():
        with contextlib.suppress(psutil.Error):
            parents[pid] = process.ppid()
    return [
        use
        for pid, depth in _in_order(parents)
        if (use := _use(found[pid], parents[pid], depth)) is not None
    ]


def _in_order(parents: dict[int, int]) -> list[tuple[int, int]]:
    """Pids with their depth, each followed by its children."""
    order: list[tuple[int, int]] = []
    waiting = [(pid, 0) for pid in sorted(parents, reverse=True) if parents[pid] not in parents]
    while waiting:
        pid, depth = waiting.pop()
        order.append((pid, depth))
        children = sorted((child for child in parents if parents[child] == pid), reverse=True)
        waiting += [(child, depth + 1) for child in children]
    return order


def _shown(words: list[str]) -> str:
    """The command line. The programs of wrapper and holder are ours, and long."""
    if is_holder(words):
        return shown_holder(words)
    if is_child(words):
        return shown_child(words)
    return words[0] if words[0] == "backburner-job" else " ".join(words)


def _use(process: psutil.Process, parent: int, depth: int) -> ProcessUse | None:
    try:
        with process.oneshot():
            words = process.cmdline() or [process.name()]
            return ProcessUse(
                pid=process.pid,
                parent=parent,
                depth=depth,
                command=_shown(words),
                cpu_percent=process.cpu_percent(),
                memory_bytes=process.memory_info().rss,
                seconds=max(0.0, round(time.time() - process.create_time(), 1)),
            )
    except psutil.Error:
        return None  # it ended meanwhile
