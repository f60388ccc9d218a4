"""Cgroups that limit the memory of a job as a whole, where one can be had.

In version 2 that is the job's own cgroup, where the memory controller is delegated to us; else one
in the version 1 hierarchy of that controller. They are children of our own, so that what limits us
limits a job too. Who was killed for the limit is counted there, and read before it is removed.
"""

import contextlib
import os
import time
from functools import cache, cached_property

from backburner.work.process import cgroup

_FAMILY = cgroup.FAMILY
_OLD_S = 3600.0
_NEARLY = 0.9
"""The kernel charges memory in batches, so the peak stays a little below the limit."""


class MemoryGroups:
    """Makes and removes those of one home."""

    def __init__(self, home_key: str, tasks_folder: str | None) -> None:
        """``tasks_folder`` is where the version 2 cgroups of the home's tasks are made."""
        self._tasks_folder = tasks_folder
        own = _own_v1_folder()
        self._version_1 = f"{cgroup.outside_jobs(own)}/{_FAMILY}{home_key}" if own else None

    def make(self, name: str, size: int, tasks_cgroup: str | None) -> str | None:
        """A cgroup with this limit, the job's own where that can be; None where none can be had."""
        if tasks_cgroup is not None and self._is_delegated:
            # No swap: what is written there is used all the same.
            swap = f"{tasks_cgroup}/memory.swap.max"
            if _write(f"{tasks_cgroup}/memory.max", size) and (
                not os.path.exists(swap) or _write(swap, 0)
            ):
                return tasks_cgroup
        if self._version_1 is not None:
            folder = f"{self._version_1}/{name}"
            swap = f"{folder}/memory.memsw.limit_in_bytes"
            if (
                cgroup.make(folder)
                and _write(f"{folder}/memory.limit_in_bytes", size)
                and (not os.path.exists(swap) or _write(swap, size))
            ):
                return folder
            cgroup.remove(folder)
        return None

    @cached_property
    def _is_delegated(self) -> bool:
        # Asked for by the first who needs it: to hand the controller on we may have to move.
        return self._tasks_folder is not None and cgroup.enable(self._tasks_folder, "memory")

    def sweep(self, in_use: set[str]) -> None:
        """Remove what keepers that died have left: ours that no task uses, and abandoned ones."""
        if self._version_1 is None:
            return
        own = os.path.dirname(self._version_1)
        for family in _children(own):
            if cgroup.is_family(family):
                for folder in _children(family):
                    ours = family == self._version_1
                    if folder not in in_use and (ours or _age_s(folder) > _OLD_S):
                        cgroup.remove(folder)
                with contextlib.suppress(OSError):  # one that is in use stays
                    os.rmdir(family)

    def close(self) -> None:
        """Remove the folder of the home where nothing is in it."""
        if self._version_1 is not None:
            with contextlib.suppress(OSError):
                os.rmdir(self._version_1)


def join(folder: str, pid: int) -> bool:
    """Put a process into it; what it starts from then on is in it too."""
    return _write(f"{folder}/cgroup.procs", pid)


def is_version_2(folder: str) -> bool:
    """Whether it is a job's own cgroup."""
    return os.path.exists(f"{folder}/memory.max")


def was_exceeded(folder: str) -> bool:
    """Whether a process was killed because all of them together wanted more than the limit.

    Both: the kernel counts those too that it kills when the whole machine has no memory.
    """
    if is_version_2(folder):
        events = _numbers(f"{folder}/memory.events")
        return events.get("oom_kill", 0) > 0 and events.get("max", 0) > 0
    killed = _numbers(f"{folder}/memory.oom_control").get("oom_kill", 0)
    limit = _number(f"{folder}/memory.limit_in_bytes")
    most = _number(f"{folder}/memory.max_usage_in_bytes")
    return killed > 0 and most >= _NEARLY * limit


def cpu_seconds(tasks_cgroup: str) -> float:
    """How much CPU time all processes of a job have used; 0 where that is not known."""
    return _numbers(f"{tasks_cgroup}/cpu.stat").get("usage_usec", 0) / 1e6


def leave_job_group() -> None:
    """Move this process out of a job's memory cgroup, so that the job's limit is not ours."""
    own = _own_v1_folder()
    if own is not None and own != cgroup.outside_jobs(own):
        _write(f"{cgroup.outside_jobs(own)}/cgroup.procs", 0)
        _own_v1_folder.cache_clear()


@cache
def _own_v1_folder() -> str | None:
    """The cgroup of this process in the version 1 hierarchy of the memory controller."""
    path = next(
        (
            line.split(b":", 2)[2]
            for line in _read("/proc/self/cgroup").splitlines()
            if b"memory" in line.split(b":", 2)[1].split(b",")
        ),
        None,
    )
    if path is None:
        return None
    for line in _read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(b" - ")
        kind, _, options = after.split(maxsplit=2)
        if kind == b"cgroup" and b"memory" in options.split(b","):
            root, point = before.split()[3:5]
            # In a container the mount may begin below: at the very cgroup of the container.
            inside = os.path.relpath(path, root) if root != b"/" else path.lstrip(b"/")
            folder = os.fsdecode(os.path.normpath(os.path.join(point, inside)))
            return folder if os.path.exists(f"{folder}/cgroup.procs") else None
    return None


def _children(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir()]
    except OSError:
        return []


def _age_s(folder: str) -> float:
    try:
        return time.time() - os.stat(folder).st_mtime
    except OSError:
        return 0.0


def _numbers(path: str) -> dict[str, int]:
    """Of a file with a name and a number in each line."""
    pairs = (line.split() for line in _read(path).decode("ascii", "replace").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}  # noqa: PLR2004


def _number(path: str) -> int:
    text = _read(path).strip()
    return int(text) if text.isdigit() else 0


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read() or b""
    except OSError:
        return b""


def _write(path: str, value: int | str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY)
    except OSError:
        return False
    try:
        os.write(fd, str(value).encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
