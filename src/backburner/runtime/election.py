"""Who is the keeper of a home, of which edition it is, and how one is called.

A POSIX record lock elects: it ends with its process and is not inherited by children (an flock
would stay held by a job that was forked while we died). Its one trap is that closing any
descriptor of the file drops the lock, so this module is the only one that opens it.

The lock has two parts: who has all but the first byte is elected and says in the file who it is;
then it takes the first byte, and is the keeper. So whoever sees a keeper can read who that is.
"""

import contextlib
import fcntl
import os
import struct
import sys
import threading
import time

from backburner.model.errors import KeeperUnreachable
from backburner.model.home import Home
from backburner.model.values import value
from backburner.runtime.edition import Edition, ours, read_edition

_FLOCK = "hhqqi4x"  # l_type, l_whence, l_start, l_len, l_pid of struct flock on 64-bit Linux

_held: dict[str, "KeeperLock"] = {}
"""By home: the locks of this process. Looking at one's own lock would drop it."""

_one_at_a_time = threading.Lock()
"""Whoever looks in one thread while another takes the lock would drop it, too."""

_called: dict[str, float] = {}
_TRIES = 3
_CALL_AGAIN_S = 1.0
"""A keeper needs about 0.2 s to start; calling it twice only costs the second one."""


_SAID_MAX = 256

STAY = "--stay"
"""Tells a guardian, and through it a keeper, to stay when there is nothing to do."""


@value
class Sitting:
    """The keeper that there is."""

    pid: int
    edition: Edition


class KeeperLock:
    """The right to act as the keeper of a home, for as long as this object is not released."""

    def __init__(self, path: str, fd: int, edition: Edition) -> None:
        self.edition = edition
        self._path = path
        self._fd = fd

    @classmethod
    def acquire(cls, home: Home, *, stays: bool = False) -> "KeeperLock | None":
        """The lock, or None where another process, or another part of this one, has it."""
        return cls._acquire(home.keeper_lock, ours(stays=stays))

    @classmethod
    def acquire_next(cls, home: Home) -> "KeeperLock | None":
        """The right to ask for the lock, and to wait for it: one at a time."""
        return cls._acquire(home.keeper_next, ours())

    @classmethod
    def _acquire(cls, path: str, edition: Edition) -> "KeeperLock | None":
        with _one_at_a_time:
            return None if path in _held else cls._acquire_anew(path, edition)

    @classmethod
    def _acquire_anew(cls, path: str, edition: Edition) -> "KeeperLock | None":
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 0, 1)  # a length of 0 is all the rest
            name = edition.said_by(os.getpid())
            with contextlib.suppress(OSError):  # a full disk; the lock is what counts
                os.pwrite(fd, name, 0)
                os.ftruncate(fd, len(name))
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError:
            os.close(fd)
            return None
        lock = cls(path, fd, edition)
        _held[path] = lock
        return lock

    def release(self) -> None:
        """Give it up."""
        with _one_at_a_time:
            if _held.get(self._path) is self:
                del _held[self._path]
                os.close(self._fd)


def keeper_pid(home: Home) -> int | None:
    """The process that is the keeper now."""
    sitting = sitting_keeper(home)
    return None if sitting is None else sitting.pid


def sitting_keeper(home: Home) -> Sitting | None:
    """The keeper that there is now, if any."""
    with _one_at_a_time:
        own = _held.get(home.keeper_lock)
        return _look(home) if own is None else Sitting(os.getpid(), own.edition)


def _look(home: Home) -> Sitting | None:
    try:
        fd = os.open(home.keeper_lock, os.O_RDWR)
    except OSError:
        return None
    try:
        pid = _holder(fd)
        if pid is None:
            return None
        return Sitting(pid, read_edition(os.pread(fd, _SAID_MAX, 0), pid))
    finally:
        os.close(fd)


def _holder(fd: int) -> int | None:
    if sys.platform == "linux":
        question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, question))
        return None if kind == fcntl.F_UNLCK else pid
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
    except OSError:
        first = os.pread(fd, 32, 0).split(b"\n")[0]
        return int(first) if first.isdigit() else None
    return None


def keeper_is_missing(home: Home) -> bool:
    """Whether nobody keeps this home, or a keeper that ours may replace.

    One of a shared record has none: nodes carry its tasks out.
    """
    if home.shared:
        return False
    sitting = sitting_keeper(home)
    return sitting is None or ours().may_replace(sitting.edition)


def call_keeper(home: Home, *, stays: bool = False) -> None:
    """See to it that a keeper is there or on its way. Costs a few microseconds when it is.

    One of an older edition is as good as none: the new one asks it to leave, and adopts its jobs.
    With ``stays``, one that comes in the place of one that stayed.
    """
    if not keeper_is_missing(home):
        return
    now = time.monotonic()
    wait = _called.get(home.keeper_lock, -_CALL_AGAIN_S) + _CALL_AGAIN_S - now
    if wait > 0:
        import asyncio  # slow to load, like subprocess below: `backburner ls` asks for the keeper

        # On its way; or it has died or left since, so a task must not wait for it in vain.
        with contextlib.suppress(RuntimeError):  # no loop: nobody who could look later
            asyncio.get_running_loop().call_later(wait, _call_again, home)
        return
    _called[home.keeper_lock] = now
    guardian = [sys.executable, "-m", "backburner.keeper.guardian", str(home.root)]
    start_detached([*guardian, STAY] if stays else guardian, home)


def _call_again(home: Home) -> None:
    with contextlib.suppress(KeeperUnreachable):
        call_keeper(home)


def start_detached(command: list[str], home: Home, pass_fds: tuple[int, ...] = ()) -> None:
    """Start a process of ours that is nobody's child, with nothing of the caller's but its name."""
    import subprocess

    try:
        log = os.open(home.keeper_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise KeeperUnreachable(
            f"the keeper could not be started: {error.strerror}: {home.keeper_log}",
            remedy="check that the home folder is there and writable",
        ) from error
    try:
        for _ in range(_TRIES):
            # The shell ends at once, so that the caller never has a child to collect.
            shell = subprocess.Popen(
                ["/bin/sh", "-c", '"$@" &', "sh", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=plain_environment(),
                start_new_session=True,
                pass_fds=pass_fds,
            )
            if shell.wait() == 0:
                return
            if shell.returncode > 0:
                break  # else somebody killed it
        raise KeeperUnreachable("the keeper could not be started", remedy="see keeper.log")
    except OSError as error:
        raise KeeperUnreachable(
            f"the keeper could not be started: {error.strerror}", remedy="run: backburner doctor"
        ) from error
    finally:
        os.close(log)


_OF_A_JOB = tuple(
    f"BACKBURNER_{name}" for name in ("TASK_ID", "ATTEMPT", "SESSION", "HOME", "REPORT")
)
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")


def plain_environment() -> dict[str, str]:
    """What a keeper needs. Not the secrets of whoever happened to call it, and not its task."""
    settings = ("BACKBURNER_", "LC_", "COVERAGE_")
    return {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or (name.startswith(settings) and name not in _OF_A_JOB)
    }
