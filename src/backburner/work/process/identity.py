"""Telling processes apart over time: the boot, and descriptors that a recycled pid cannot fool."""

import os
from functools import cache


@cache
def boot_id() -> str:
    """The name of this boot: a process of another one is not alive, whatever its pid says."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        import psutil

        return f"boot-{int(psutil.boot_time())}"


def open_pidfd(pid: int) -> int | None:
    """A descriptor for this very process; readable when it ends. None: there is no such process."""
    try:
        return os.pidfd_open(pid)
    except (ProcessLookupError, OSError):
        return None


def read_proc(pid: int | str, name: str) -> bytes:
    """A small file of /proc/PID; empty where the process is gone or not ours to look at."""
    try:
        fd = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
    except OSError:
        return b""
    try:
        parts: list[bytes] = []
        while part := os.read(fd, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(fd)


def is_zombie(pid: int) -> bool:
    """Ended, and not yet collected by its parent: nothing of it runs any more."""
    stat = read_proc(pid, "stat")
    if stat[stat.rfind(b")") + 2 : stat.rfind(b")") + 3] not in (b"Z", b"X", b""):
        return False
    try:  # a first thread that has ended while others go on looks like a zombie too
        return len(os.listdir(f"/proc/{pid}/task")) <= 1
    except OSError:
        return True
