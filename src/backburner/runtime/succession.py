"""One keeper after another: a newer one asks an older one to leave, and has its place.

The older one is only ever asked (SIGTERM), by a descriptor that a recycled pid cannot fool, and it
leaves its jobs alone; the lock sees to it that two never act at once. Whoever dies in between
leaves either the old keeper, which its guardian starts again, or the new one, likewise.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Generator

from backburner.model.errors import KeeperUnreachable
from backburner.model.home import Home
from backburner.runtime.edition import UNKNOWN, ours
from backburner.runtime.election import KeeperLock, Sitting, call_keeper, sitting_keeper
from backburner.work.process.identity import open_pidfd, read_proc

PATIENCE_S = 30.0
"""A keeper leaves within about a second. One that takes longer is stopped, or stuck on its disk."""

_TURN_S = 2.0
"""Whoever has the turn for longer waits for an older keeper; who only looked is done by then."""

_NAP_S = 0.02


def take_office(
    home: Home, *, stays: bool = False, will_stay: Callable[[], None] = lambda: None
) -> KeeperLock | None:
    """The keeper lock, for a keeper; None where there is one that is as good, or one that waits.

    KeeperUnreachable where an older one does not leave. To have the place of one that stays is to
    stay too: whoever installed the service wants a keeper that is always there. ``will_stay`` is
    called when that is known, before the older one is asked: who dies after that is not the last.
    """
    # One at a time, or one that came later could have the place before the one that waits for it.
    turn = _wait_for_turn(home)
    if turn is None:
        return None  # the one that waits for an older keeper to leave will do
    try:
        return _succeed(home, stays=stays, will_stay=will_stay)
    finally:
        turn.release()


@contextlib.contextmanager
def making_way(home: Home) -> Generator[None]:
    """While this lasts no keeper of an older edition acts: for bringing the record up.

    An older keeper would not know what the new columns mean, and start what has to wait.
    """
    lock = _succeed(home, stays=False)
    try:
        yield
    finally:
        if lock is not None:
            lock.release()
            with contextlib.suppress(KeeperUnreachable):
                # Whoever was called meanwhile took us for the keeper.
                call_keeper(home, stays=lock.edition.stays)


def dismiss(home: Home) -> None:
    """Ask the keeper to leave, whatever its edition; returns when it has. The jobs go on."""
    sitting = sitting_keeper(home)
    if sitting is not None:
        _ask_to_leave(home, sitting, time.monotonic() + PATIENCE_S)


def _wait_for_turn(home: Home) -> KeeperLock | None:
    deadline = time.monotonic() + _TURN_S
    while (turn := KeeperLock.acquire_next(home)) is None:
        if time.monotonic() > deadline:
            return None
        time.sleep(_NAP_S)
    return turn


def _succeed(
    home: Home, *, stays: bool, will_stay: Callable[[], None] = lambda: None
) -> KeeperLock | None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        lock = KeeperLock.acquire(home, stays=stays)
        if lock is not None:
            return lock
        sitting = sitting_keeper(home)
        if sitting is None:
            time.sleep(_NAP_S)  # it left at this moment
            continue
        if not ours(stays=stays).may_replace(sitting.edition):
            return None
        if sitting.edition.stays and not stays:
            stays = True
            will_stay()
        _ask_to_leave(home, sitting, deadline)


def _ask_to_leave(home: Home, sitting: Sitting, deadline: float) -> None:
    """Returns when it has left, or when somebody else has its place."""
    if sitting.pid <= 0:  # how the kernel names one that lives in another container
        raise _stuck(sitting, "cannot be seen from here", "end it where it runs")
    pidfd = open_pidfd(sitting.pid)
    if pidfd is None:
        if time.monotonic() > deadline:
            raise _stuck(sitting, "cannot be asked to leave", "run: backburner doctor")
        time.sleep(_NAP_S)  # it has just died: its lock goes last
        return
    try:
        if sitting_keeper(home) != sitting:  # else the descriptor is that of the keeper
            return
        command = read_proc(sitting.pid, "cmdline")
        if command and b"backburner.keeper" not in command.split(b"\0"):
            raise _stuck(sitting, "keeps this home inside a program", "close that program")
        if command:  # else it is dying: a process loses its name before its locks
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        if not _ends(pidfd, deadline) and sitting_keeper(home) == sitting:
            raise _stuck(sitting, "does not leave", f"end it: kill -KILL {sitting.pid}")
    except PermissionError as error:
        raise _stuck(sitting, "belongs to another user", "end it as that user") from error
    except ProcessLookupError:
        return
    finally:
        os.close(pidfd)


def _ends(pidfd: int, deadline: float) -> bool:
    poll = select.poll()  # an application may have more descriptors than select can take
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def _stuck(sitting: Sitting, what: str, remedy: str) -> KeeperUnreachable:
    version = "unknown" if sitting.edition == UNKNOWN else sitting.edition.version
    return KeeperUnreachable(
        f"the keeper (pid {sitting.pid}, version {version}) {what}",
        remedy=f"{remedy}; its jobs go on",
    )
