"""The sign of life of a worker: a lock on a file of its name, which ends with its process."""

import contextlib
import fcntl
import os

from backburner.model.forks import not_for_children
from backburner.model.home import Home
from backburner.work.flock import is_held


class WorkerLock:
    """Held from its making until `release`, or until the process dies."""

    def __init__(self, home: Home, worker_id: str) -> None:
        os.makedirs(home.workers, mode=0o700, exist_ok=True)
        self._path = home.worker_lock(worker_id)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        not_for_children(self)

    def release(self) -> None:
        """The worker has gone in order."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        self.close()

    def close(self) -> None:
        """Close the descriptor; the lock stays with whoever else has it open."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_alive(home: Home, worker_id: str) -> bool:
    """Whether this worker lives. One whose lock is gone does not."""
    try:
        return is_held(home.worker_lock(worker_id))
    except OSError:
        return False
