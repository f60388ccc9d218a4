"""What the kernel and the file system of the home can do for us, each thing tried out."""

import os
import resource
import select
import tempfile
from collections.abc import Callable
from pathlib import Path

from backburner.cli.checks.finding import Finding, Level
from backburner.store.sqlite.wake import WakeFolder
from backburner.work import linux
from backburner.work.process import cgroup
from backburner.work.process.mark import marking_children

_FEW_FILES = 1024
_BLOCK = 64 * 1024
_FEW_WATCHES = 8192
_FEW_INSTANCES = 64

INOTIFY = "/proc/sys/fs/inotify"


def tried(check: str, folder: Path, attempt: Callable[[str], Finding]) -> Finding:
    """Try something in a folder on the home's file system."""
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as trial:
            return attempt(trial)
    except OSError as error:
        return Finding(check, Level.FAIL, str(error.strerror or error), "check the disk")


def processes() -> Finding:
    """How the processes of a task are found."""
    # A name of its own: the keeper's folder must not vanish under it.
    folder = cgroup.family_folder(f"doctor-{os.getpid()}")
    if folder is not None:
        usable = cgroup.make(f"{folder}/try")
        cgroup.remove(f"{folder}/try")
        cgroup.remove(folder)
        if usable:
            return Finding("process trees", Level.OK, "a cgroup for each task")
    with marking_children(1 << 62) as marks:
        if marks:
            return Finding("process trees", Level.OK, "by mark (no cgroup can be made here)")
    return Finding(
        "process trees",
        Level.WARN,
        "by environment only: a job that clears it can escape a stop",
        "delegate a cgroup to this user, or lift the hard limit of RLIMIT_RTTIME",
        "a stop promises that nothing of the task is left",
    )


def punches_holes(trial: str) -> Finding:
    """How long logs are cut."""
    with open(f"{trial}/log", "wb", buffering=0) as file:
        file.write(b"x" * 4 * _BLOCK)
        os.fsync(file.fileno())
        try:
            linux.punch_hole(file.fileno(), _BLOCK, 2 * _BLOCK)
        except OSError as error:
            return Finding(
                "log holes",
                Level.WARN,
                f"not here ({error.strerror}): long logs are copied and cut instead",
                "ext4, xfs, btrfs and tmpfs can do it",
                "a little output can be lost in the moment of a cut, and the reader is told",
            )
    return Finding("log holes", Level.OK, "the middle of a long log can be freed")


def hears_of_growth(trial: str) -> Finding:
    """How the keeper hears that a job has written."""
    try:
        with linux.Inotify() as inotify, open(f"{trial}/log", "wb", buffering=0) as file:
            inotify.add(f"{trial}/log", linux.Watch.MODIFY)
            file.write(b"x")
            heard = bool(inotify.drain())
    except OSError as error:
        heard, reason = False, str(error.strerror)
    else:
        reason = "no event came"
    if heard:
        return _inotify_limits()
    return Finding(
        "log growth",
        Level.WARN,
        f"looked at all the time ({reason})",
        "raise fs.inotify.max_user_watches and max_user_instances",
        "it costs processor time for as long as a job runs",
    )


def _inotify_limits() -> Finding:
    watches, instances = (
        _number(f"{INOTIFY}/max_user_{name}") for name in ("watches", "instances")
    )
    if (watches or _FEW_WATCHES) < _FEW_WATCHES or (instances or _FEW_INSTANCES) < _FEW_INSTANCES:
        return Finding(
            "log growth",
            Level.WARN,
            f"the kernel tells of it, with few watches ({watches}) or instances ({instances})",
            f"sysctl fs.inotify.max_user_watches={64 * _FEW_WATCHES} "
            "fs.inotify.max_user_instances=1024",
            "each job needs a watch, editors take many, and without one its log is polled",
        )
    return Finding("log growth", Level.OK, "the kernel tells of it (inotify)")


def _number(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def wakes(trial: str) -> Finding:
    """How processes hear of each other's changes."""
    listening, sending = WakeFolder(f"{trial}/wake"), WakeFolder(f"{trial}/wake")
    try:
        socket = listening.listen()
        if socket is not None:
            sending.wake_others()
            heard = bool(select.select([socket.fileno()], [], [], 1.0)[0])
            socket.close()
            if heard:
                return Finding("wake-ups", Level.OK, "processes tell each other of changes")
    finally:
        listening.close()
        sending.close()
    return Finding(
        "wake-ups",
        Level.WARN,
        "no sockets on this file system: changes are noticed once a second",
        "put the home on a local disk",
        "starts and waits take up to a second longer",
    )


def open_files() -> Finding:
    """How many files the keeper may have open: a few for each job."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = "no limit" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    text = f"{most} for the keeper, {soft:,} for a job started here"
    if hard != resource.RLIM_INFINITY and hard < _FEW_FILES:
        return Finding(
            "open files",
            Level.WARN,
            text,
            "raise the limit: ulimit -Hn 65536",
            "the keeper needs a few for each job",
        )
    return Finding("open files", Level.OK, text)
