"""Holding a job to what it may use, from before its first line.

The wrapper is limited while it waits for the word to go, and everything that it starts inherits
that. So nothing of the job ever runs without its limits, and nothing of ours runs with them.
"""

import contextlib
import os
import resource
from typing import TYPE_CHECKING

from backburner.work.process import cgroup, memory
from backburner.work.process.mark import mark_of
from backburner.work.process.memory import MemoryGroups

if TYPE_CHECKING:  # what a guardian needs of this file is little, and has to load quickly
    from backburner.model.allowance import Allowance

_TIME_TO_HEAR_S = 5
"""CPU time between the signal that it is used up and the kill of what does not heed it."""


def impose(
    pid: int, allowed: "Allowance", groups: MemoryGroups | None, name: str, tasks_cgroup: str | None
) -> str | None:
    """Limit this process and all that it will start. Answers the cgroup that limits its memory.

    OSError or ValueError where that cannot be: then it must not run.
    """
    if allowed.nice is not None:
        _set_nice(pid, allowed.nice)
    if (most := allowed.cpu_seconds) is not None:
        _limit(pid, resource.RLIMIT_CPU, most, most + _TIME_TO_HEAR_S)
    if allowed.memory is None:
        return None
    folder = groups.make(name, allowed.memory, tasks_cgroup) if groups else None
    if folder is not None and memory.join(folder, pid):
        return folder
    _limit(pid, resource.RLIMIT_AS, allowed.memory, allowed.memory)
    if folder is not None and folder != tasks_cgroup:
        cgroup.remove(folder)
    return None


def _limit(pid: int, what: int, soft: int, hard: int) -> None:
    _, most = resource.prlimit(pid, what)
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.prlimit(pid, what, (soft, hard))


def _set_nice(pid: int, nice: int) -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, pid, nice)
    except PermissionError:
        own = os.getpriority(os.PRIO_PROCESS, 0)
        raise ValueError(
            f"a niceness of {nice} needs a privilege that the keeper does not have: "
            f"without it {own} is the lowest"
        ) from None


def step_out_of_limits() -> None:
    """Whoever called may be a job; what limits it must not limit us. As far as we are allowed."""
    memory.leave_job_group()
    if mark_of("self") is None:
        return
    for what in (resource.RLIMIT_AS, resource.RLIMIT_CPU):
        for most in (resource.RLIM_INFINITY, resource.getrlimit(what)[1]):
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(what, (most, most))
                break
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
