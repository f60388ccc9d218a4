"""Folders to measure in, and the promise that nothing of them stays.

Everything lies under one temporary folder (TMPDIR decides where), so that ours and the raw limit
write to the same file system. Only processes that belong to that folder are ever ended.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from backburner.model.home import Home
from backburner.runtime.election import keeper_pid

_TIME_TO_LEAVE_S = 60.0
"""For a keeper to notice that its home is gone and to end what it still has."""


@contextlib.contextmanager
def workspace() -> Generator[Path]:
    """A folder for one benchmark; afterwards it is gone, and every process of its homes too."""
    folder = Path(tempfile.mkdtemp(prefix="backburner-bench-"))
    try:
        yield folder
    finally:
        _leave_nothing(folder)


def pid_of_keeper(home: Path) -> int:
    """The keeper of a home, which has to be there."""
    pid = keeper_pid(Home(home))
    if pid is None:
        raise RuntimeError(f"no keeper in {home}: see its keeper.log")
    return pid


def file_system(folder: Path) -> str:
    """The kind of file system that a folder lies on."""
    best = ("", "unknown")
    with open("/proc/self/mounts", encoding="utf-8") as file:
        for line in file:
            _, mount, kind, *_ = line.split()
            inside = str(folder) == mount or str(folder).startswith(mount.rstrip("/") + "/")
            if inside and len(mount) >= len(best[0]):
                best = (mount, kind)
    return best[1]


def _leave_nothing(folder: Path) -> None:
    deadline = time.monotonic() + _TIME_TO_LEAVE_S
    while True:
        for pid in _processes(folder, jobs=True):
            _kill(pid)
        # Again and again: a keeper that writes at this moment can put a file in the way.
        shutil.rmtree(folder, ignore_errors=True)
        left = [*_processes(folder, jobs=True), *_processes(folder, jobs=False)]
        if not left and not folder.exists():
            return
        if time.monotonic() > deadline:
            for pid in left:
                _kill(pid)
            raise RuntimeError(f"{len(left)} processes of {folder} did not leave by themselves")
        time.sleep(0.05)


def _processes(folder: Path, *, jobs: bool) -> list[int]:
    """Jobs have the home in their environment, keepers and guardians on their command line."""
    sign = (b"BACKBURNER_HOME=" if jobs else b"\0") + os.fsencode(folder) + b"/"
    name = "environ" if jobs else "cmdline"
    found: list[int] = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/{name}", "rb") as file:
                if sign in file.read():
                    found.append(int(entry))
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
