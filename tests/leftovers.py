"""What a test left behind: processes that belong to a home.

A process belongs to a home when its environment or command line names it, or when it works in it
or holds a file of it open: the last finds a job that cleared its environment. Linux only (/proc).
"""

import contextlib
import functools
import os
import re
import select
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Leftover:
    """One process that belongs to a folder."""

    pid: int
    why: str
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} {self.why}: {self.command}"


def processes_of(folder: Path) -> list[Leftover]:
    """Every process that belongs to `folder`. This one counts only by the files it holds open."""
    # Not followed by more of a name: h1 is not h10.
    name = re.escape(os.fsencode(folder)) + rb"(?![\w.-])"
    in_environment = re.compile(rb"(?:^|\0)BACKBURNER_HOME=" + name)
    in_text = re.compile(name)
    ours = _ourselves(os.getpid())

    found: list[Leftover] = []
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        if not _has_program(pid):
            continue
        command = _read(pid, "cmdline")
        if pid not in ours and in_text.search(command):
            why = "names it in its command line"
        elif pid not in ours and in_environment.search(_read(pid, "environ")):
            why = "carries it in BACKBURNER_HOME"
        elif link := next((link for link in _links(pid) if in_text.match(link)), None):
            why = f"holds {os.fsdecode(link)}"
        else:
            continue
        found.append(Leftover(pid, why, _printable(command)))
    return found


def strangers_of(folder: Path) -> list[Leftover]:
    """The same without this process."""
    return [each for each in processes_of(folder) if each.pid != os.getpid()]


def until_ended(processes: Iterable[Leftover], timeout: float) -> None:
    """Wait until others of these have ended, or time is up."""
    deadline = time.monotonic() + timeout
    for each in processes:
        if each.pid == os.getpid():
            continue
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(each.pid)
            try:
                select.select([pidfd], [], [], max(0, deadline - time.monotonic()))
            finally:
                os.close(pidfd)


def end_once(folder: Path) -> bool:
    """Kill every process of `folder` but this one; whether there was any."""
    found = strangers_of(folder)
    for each in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGKILL)
    return bool(found)


@functools.cache
def _ourselves(pid: int) -> frozenset[int]:
    return frozenset({pid, *(parent.pid for parent in psutil.Process(pid).parents())})


def _has_program(pid: int) -> bool:
    """Threads of the kernel have none, and are many; nor has what is dead."""
    try:
        os.readlink(f"/proc/{pid}/exe")
    except FileNotFoundError:
        return False
    except OSError:  # another user's
        pass
    return True


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # gone, or another user's
        return b""


def _links(pid: int) -> Iterator[bytes]:
    """Where it works, and what it holds open."""
    paths = [f"/proc/{pid}/cwd"]
    try:
        paths += [f"/proc/{pid}/fd/{number}" for number in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return
    for path in paths:
        try:
            yield os.fsencode(os.readlink(path))
        except OSError:
            continue


def _printable(command: bytes) -> str:
    text = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return text[:200] or "(no command line)"
