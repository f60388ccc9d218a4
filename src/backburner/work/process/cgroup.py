"""A cgroup for each task, where one may be made: cheap to ask who is in it, ended at one blow.

Version 2 only. Where it cannot be had the mark (`mark.py`) finds the same processes by a look at
/proc; what is left to cgroups is that they are quicker, and end a fork bomb without a race.
"""

import contextlib
import os
import re
from functools import cache

from backburner.work.process.identity import read_proc


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


FAMILY = "backburner."
"""How the folder of a home begins, in every hierarchy."""

_JOB = re.compile(rf"/{re.escape(FAMILY)}[0-9a-f]{{12}}(?=/|$)")
"""Not `backburner.service`, which is where systemd has the keeper itself."""

LAUNCHER = "backburner-launcher"
"""A word in the command line of a launcher, which lives where its worker does."""

_ASIDE = "backburner-keeper"
_TRIES = 10


def outside_jobs(folder: str) -> str:
    """The same, or where the folder of the home is that it lies in: a job may start a keeper."""
    job = _JOB.search(folder)
    return folder[: job.start()] if job else folder


def is_family(folder: str) -> bool:
    """Whether it is the folder of a home."""
    job = _JOB.search(folder)
    return job is not None and job.end() == len(folder)


def family_folder(home_key: str) -> str | None:
    """The folder for the cgroups of one home, made; None where we may not."""
    own = _own_folder()
    if own is None:
        return None
    own = outside_jobs(own).removesuffix(f"/{_ASIDE}")
    folder = f"{own}/{FAMILY}{home_key}"
    _sweep(own)
    for _ in range(_TRIES):
        if not make(folder):
            return None
        if os.access(f"{folder}/cgroup.procs", os.W_OK):
            return folder
        if os.path.exists(folder):
            return None
        # Another keeper that has just come has swept it: it was empty.
    return None


def _sweep(own: str) -> None:
    """Remove families without tasks: of homes that vanished while their keepers were dead."""
    with contextlib.suppress(OSError):
        for name in os.listdir(own):
            if name.startswith(FAMILY):
                with contextlib.suppress(OSError):  # one that is in use stays
                    os.rmdir(f"{own}/{name}")


def leave_job_cgroup() -> None:
    """Move this process out of a job's cgroup, so that the end of the job is not ours."""
    own = _own_folder()
    if own is not None and own != outside_jobs(own):
        _write(f"{outside_jobs(own)}/cgroup.procs", "0")
        _own_folder.cache_clear()


def enable(family: str, controller: str) -> bool:
    """Let the cgroups of the tasks have this controller. False where it is not ours to hand on."""
    own = os.path.dirname(family)
    for folder in (own, family):
        control = f"{folder}/cgroup.subtree_control"
        if controller in _read(control).split() or _write(control, f"+{controller}"):
            continue
        if folder == family or not _step_aside(own) or not _write(control, f"+{controller}"):
            return False
    return True


def _step_aside(own: str) -> bool:
    """Only a cgroup without processes of its own can hand on a controller.

    Where nobody but we live in it, as in a unit of systemd, we can make room.
    """
    living = _read(f"{own}/cgroup.procs").split()
    ours = {str(os.getpid()), *(pid for pid in living if _is_called(pid, LAUNCHER))}
    if _is_called(os.getppid(), "backburner.keeper.guardian"):
        ours.add(str(os.getppid()))
    if not living or not ours >= set(living) or not make(f"{own}/{_ASIDE}"):
        return False
    return all(_write(f"{own}/{_ASIDE}/cgroup.procs", pid) for pid in living)


def _is_called(pid: int | str, name: str) -> bool:
    return name.encode() in read_proc(pid, "cmdline").split(b"\0")


def make(folder: str) -> bool:
    """Make a family, or the cgroup of a task with it.

    Another keeper that has just come may sweep the family between the two: then once more.
    """
    for _ in range(_TRIES):
        try:
            os.makedirs(folder, exist_ok=True)
        except FileNotFoundError:
            continue
        except OSError:
            return False
        return True
    return False


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


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY)
    except OSError:
        return False
    try:
        os.write(fd, text.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
