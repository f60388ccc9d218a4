"""One gateway for a platform and a home: two would both hear, and both answer.

The lock is an flock that ends with its process; its descriptor is closed in every child that is
started, so that a job does not hold it.
"""

import contextlib
import fcntl
import os
from collections.abc import Generator

from backburner.model.errors import Conflict


@contextlib.contextmanager
def alone(folder: str, what: str, *, remedy: str) -> Generator[None]:
    """Hold the lock of this folder. Conflict where somebody does already."""
    fd = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(fd, 32, 0).decode(errors="replace").strip()
            holder = f" (process {pid})" if pid.isdigit() else ""
            raise Conflict(f"{what} is running already{holder}", remedy=remedy) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)
