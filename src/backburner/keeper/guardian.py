"""The guardian: the keeper's parent, which starts it again when it dies.

A few lines on purpose, with nothing imported that could fail. It is the child subreaper, so that
jobs whose keeper died become its children and are collected. It knows one thing: a keeper that
leaves on purpose says a byte before its end of the line closes, and one that died does not.
"""

import os
import signal
import socket
import sys
import time

_FIRST_DELAY_S = 0.05
_LONGEST_DELAY_S = 5.0
_STEADY_S = 10.0
"""A keeper that lived this long had no trouble starting: the next one starts at once."""


def main(root: str, line_fd: int | None = None) -> None:
    """Guard the keeper of a home until it leaves on purpose.

    With ``line_fd`` a keeper runs already, and lost its guardian: take its place.
    """
    _step_out_of_any_job()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects the dead
    line = socket.socket(fileno=line_fd) if line_fd is not None else _start_keeper(root)
    delay = _FIRST_DELAY_S
    while True:
        began = time.monotonic()
        if line.recv(1):
            return
        line.close()
        if time.monotonic() - began > _STEADY_S:
            delay = _FIRST_DELAY_S
        time.sleep(delay)
        delay = min(delay * 2, _LONGEST_DELAY_S)
        if not os.path.isdir(root):
            return
        line = _start_keeper(root)


def _start_keeper(root: str) -> socket.socket:
    ours, theirs = socket.socketpair()
    os.set_inheritable(theirs.fileno(), True)
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "backburner.keeper", root, str(theirs.fileno())],
        os.environ,
        setsigdef=[signal.SIGCHLD],
    )
    theirs.close()
    return ours


def _step_out_of_any_job() -> None:
    """Whoever called may be a job of ours; its end must not be the end of the keeper."""
    import contextlib

    from backburner.work.linux import set_child_subreaper
    from backburner.work.process.cgroup import leave_job_cgroup
    from backburner.work.process.mark import clear_own_mark

    with contextlib.suppress(OSError):
        set_child_subreaper()
    leave_job_cgroup()
    clear_own_mark()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)  # noqa: PLR2004
