"""A cgroup for each task, where one may be made: cheap to ask who is in it, ended at one blow.

Version 2 only. Where it cannot be had the mark (`mark.py`) finds the same processes by a look at
/proc; what is left to cgroups is that they are quicker, and end a fork bomb without a race.
"""

import contextlib
import os
from functools import cache


@cache
def _own_folder() -> str | None:
    """The cgroup that this process is in, as a folder; None without version 2."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            path = next(line[3:].strip() for line in file if line.startswith("0::"))
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                if after.startswith("cgroup2 "):
                    return before.split()[4].rstrip("/") + path.rstrip("/")
    except (OSError, StopIteration):
        pass
    return None


_FAMILY = "backburner."


def family_folder(home_key: str) -> str | None:
    """The folder for the cgroups of one home, made; None where we may not."""
    own = _own_folder()
    if own is None:
        return None
    # A keeper that was started from inside a job must not live in that job's cgroup.
    if f"/{_FAMILY}" in own:
        own = own[: own.index(f"/{_FAMILY}")]
    folder = f"{own}/{_FAMILY}{home_key}"
    _sweep(own)
    try:
        os.makedirs(folder, exist_ok=True)
        if not os.access(f"{folder}/cgroup.procs", os.W_OK):
            return None
    except OSError:
        return None
    return folder


def _sweep(own: str) -> None:
    """Remove families without tasks: of homes that vanished while their keepers were dead."""
    with contextlib.suppress(OSError):
        for name in os.listdir(own):
            if name.startswith(_FAMILY):
                with contextlib.suppress(OSError):  # one that is in use stays
                    os.rmdir(f"{own}/{name}")


def leave_job_cgroup() -> None:
    """Move this process out of a job's cgroup, so that the end of the job is not ours."""
    own = _own_folder()
    if own is not None and f"/{_FAMILY}" in own:
        outside = own[: own.index(f"/{_FAMILY}")]
        with contextlib.suppress(OSError), open(f"{outside}/cgroup.procs", "w") as file:
            file.write("0")
        _own_folder.cache_clear()


def make(folder: str) -> bool:
    """Make the cgroup of a task."""
    try:
        os.makedirs(folder, exist_ok=True)  # with its family, which another keeper may have swept
    except OSError:
        return False
    return True


def members(folder: str) -> list[int]:
    """The processes in it and below; none where it is gone."""
    pids: list[int] = []
    for path, _, files in os.walk(folder):
        if "cgroup.procs" in files:
            with contextlib.suppress(OSError), open(f"{path}/cgroup.procs", "rb") as file:
                pids.extend(int(pid) for pid in file.read().split())
    return [pid for pid in pids if pid > 0]


def is_populated(folder: str) -> bool:
    """Whether a process is in it or below; the cheapest question there is."""
    try:
        fd = os.open(f"{folder}/cgroup.events", os.O_RDONLY)
    except OSError:
        return False
    try:
        return b"populated 1" in os.read(fd, 256)
    except OSError:
        return False
    finally:
        os.close(fd)


def kill(folder: str) -> None:
    """KILL to everything in it, forks in flight included; silently nothing on an old kernel."""
    with contextlib.suppress(OSError), open(f"{folder}/cgroup.kill", "w") as file:
        file.write("1")


def remove(folder: str) -> None:
    """Remove it where it is empty, with the ones below that a job may have made."""
    try:
        os.rmdir(folder)  # the usual case, without a look inside
    except OSError:
        for path, _, _ in os.walk(folder, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(path)
