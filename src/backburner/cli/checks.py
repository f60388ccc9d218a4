"""What `doctor` looks at: whether this machine and this home can keep the promises.

Changes nothing that stays: what it makes to try things out is gone afterwards.
"""

import os
import resource
import select
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from backburner.cli.place import Place
from backburner.model.clock import format_duration
from backburner.model.errors import BackburnerError
from backburner.runtime.election import keeper_pid
from backburner.runtime.glance import Glance
from backburner.store.sqlite.connection import refuse_unsafe_sqlite, sqlite_version
from backburner.store.sqlite.wake import WakeFolder
from backburner.work import linux
from backburner.work.log.marks import byte_count
from backburner.work.process import cgroup
from backburner.work.process.mark import marking_children


class Level(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    """It works, and not as well as it could."""
    FAIL = "fail"
    """A promise cannot be kept."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was found, and what to do about it."""

    check: str
    level: Level
    text: str
    remedy: str = ""


_SHARED_MEMORY_MISSING = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "sshfs",
    "fuse.sshfs",
}
"""File systems over a network, where processes of two machines cannot share a WAL."""

_LITTLE_ROOM = 500_000_000
_NO_ROOM = 20_000_000
_FEW_FILES = 1024
_BLOCK = 64 * 1024


def examine(at: Place) -> Iterator[Finding]:
    """Every check, in the order in which one builds on another."""
    yield _python()
    yield _sqlite()
    folder = _existing(at.home.root)
    home = _home(at.home.root, folder)
    yield home
    yield _file_system(folder)
    yield _room(folder)
    record = _record(at)
    yield record
    if Level.FAIL in {home.level, record.level}:
        return  # what follows writes to the one and reads the other
    yield _keeper(at)
    yield _processes()
    yield _tried("log holes", folder, _punches_holes)
    yield _tried("log growth", folder, _hears_of_growth)
    yield _tried("wake-ups", folder, _wakes)
    yield _open_files()


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 11):  # noqa: UP036 - a doctor looks also where nobody should be ill
        return Finding("python", Level.FAIL, version, "install Python 3.11 or newer")
    return Finding("python", Level.OK, version)


def _sqlite() -> Finding:
    version = sqlite_version()
    try:
        refuse_unsafe_sqlite(version)
    except BackburnerError as error:
        return Finding("sqlite", Level.FAIL, error.message, error.remedy)
    return Finding("sqlite", Level.OK, version)


def _existing(root: Path) -> Path:
    """The home, or the nearest folder above it that exists."""
    return next(path for path in (root, *root.parents) if path.exists())


def _home(root: Path, folder: Path) -> Finding:
    remedy = "choose another one with --home or BACKBURNER_HOME"
    if not folder.is_dir():
        return Finding("home", Level.FAIL, f"{folder} is no folder", remedy)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding("home", Level.FAIL, f"{folder}: {error.strerror}", remedy)
    if folder != root:
        return Finding("home", Level.OK, f"{root} (made at the first start)")
    if folder.stat().st_mode & 0o077:
        return Finding("home", Level.WARN, f"{root} is open to other users", f"chmod 700 {root}")
    return Finding("home", Level.OK, str(root))


def _file_system(folder: Path) -> Finding:
    kind = _file_system_type(folder)
    if kind in _SHARED_MEMORY_MISSING:
        return Finding(
            "file system",
            Level.WARN,
            f"{kind}: several machines must not use this home at once",
            "put the home on a local disk",
        )
    return Finding("file system", Level.OK, kind)


def _file_system_type(folder: Path) -> str:
    """As the mount table has it, for the longest mount point that the folder lies under."""
    best, kind = "", "unknown"
    real = os.path.realpath(folder)
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                point = before.split()[4].replace("\\040", " ")
                inside = real == point or real.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, after.split()[0]
    except (OSError, IndexError):
        pass
    return kind


def _room(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{byte_count(free)} free"
    if free >= _LITTLE_ROOM:
        return Finding("disk", Level.OK, text)
    level = Level.FAIL if free < _NO_ROOM else Level.WARN
    return Finding("disk", level, text, "free some space, or: backburner prune --older-than 1d")


def _record(at: Place) -> Finding:
    try:
        with Glance(at.home) as glance:
            active, _ = glance.recent(at.scope, limit=0)
    except BackburnerError as error:
        return Finding("record", Level.FAIL, error.message, error.remedy)
    if not os.path.exists(at.home.database):
        return Finding("record", Level.OK, "none yet")
    count = _active_tasks(len(active))
    return Finding("record", Level.OK, f"{count} in session {at.session!r}")


def _active_tasks(count: int) -> str:
    return f"{count} active task" if count == 1 else f"{count} active tasks"


def _keeper(at: Place) -> Finding:
    pid = keeper_pid(at.home)
    if pid is None:
        return _no_keeper(at)
    import psutil

    try:
        age = format_duration(time.time() - psutil.Process(pid).create_time())
    except psutil.Error:
        return _no_keeper(at)  # it left at this moment
    # Not its parent: a guardian that took the place of one that died is none.
    words = {"backburner.keeper.guardian", str(at.home.root)}
    for process in psutil.process_iter(["cmdline"]):
        if words <= set(process.info["cmdline"] or ()):
            text = f"pid {pid} for {age}, guardian pid {process.pid}"
            return Finding("keeper", Level.OK, text)
    return Finding(
        "keeper", Level.WARN, f"pid {pid}, without a guardian", "it starts one within a second"
    )


def _no_keeper(at: Place) -> Finding:
    with Glance(at.home) as glance:
        waiting = glance.active_count()
    if not waiting:
        return Finding("keeper", Level.OK, "not running: there is nothing to do")
    return Finding(
        "keeper",
        Level.WARN,
        f"not running, with {_active_tasks(waiting)}",
        "backburner ls starts one",
    )


def _processes() -> Finding:
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
    )


def _tried(check: str, folder: Path, attempt: Callable[[str], Finding]) -> Finding:
    """Try something in a folder on the home's file system."""
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=folder) as trial:
            return attempt(trial)
    except OSError as error:
        return Finding(check, Level.FAIL, str(error.strerror or error), "check the disk")


def _punches_holes(trial: str) -> Finding:
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
            )
    return Finding("log holes", Level.OK, "the middle of a long log can be freed")


def _hears_of_growth(trial: str) -> Finding:
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
        return Finding("log growth", Level.OK, "the kernel tells of it (inotify)")
    return Finding(
        "log growth",
        Level.WARN,
        f"looked at all the time ({reason})",
        "raise fs.inotify.max_user_watches and max_user_instances",
    )


def _wakes(trial: str) -> Finding:
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
    )


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = "no limit" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    text = f"{most} for the keeper, {soft:,} for a job started here"
    if hard != resource.RLIM_INFINITY and hard < _FEW_FILES:
        return Finding("open files", Level.WARN, text, "raise the limit: ulimit -Hn 65536")
    return Finding("open files", Level.OK, text)
