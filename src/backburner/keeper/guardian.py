"""The guardian: the keeper's parent, which starts it again when it dies.

A few lines on purpose, with nothing imported that could fail. It is the child subreaper, so that
jobs whose keeper died become its children and are collected. A keeper that leaves on purpose says
so before its end of the line closes, and one that died does not. Told to end (SIGTERM, as systemd
does), it asks the keeper to leave, and goes with it; the jobs go on.
"""

import contextlib
import os
import signal
import socket
import sys
import time

_FIRST_DELAY_S = 0.05
_LONGEST_DELAY_S = 5.0
_STEADY_S = 10.0
"""A keeper that lived this long had no trouble starting: the next one starts at once."""

GOODBYE = b"."
"""What a keeper says when it leaves on purpose."""
STAYING = b"s"
"""What a keeper says that is to stay, though its guardian does not know: it took over from one."""
STAY = "--stay"


class Guardian:
    """Guards the keeper of one home."""

    def __init__(self, root: str, *, stay: bool) -> None:
        self._root = root
        self._stay = stay
        self._ending = False
        self._keeper: int | None = None

    def guard(self, line_fd: int | None) -> bool:
        """Until the keeper leaves on purpose; False when its home is not there.

        With ``line_fd`` a keeper runs already, and lost its guardian: take its place.
        """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects the dead
        signal.signal(signal.SIGTERM, self._end)
        line = self._start_keeper() if line_fd is None else self._take_line(line_fd)
        delay = _FIRST_DELAY_S
        while True:
            began = time.monotonic()
            while (word := line.recv(1)) == STAYING:
                self._stay = True
            if word:
                return True
            line.close()
            self._forget_keeper()
            if time.monotonic() - began > _STEADY_S:
                delay = _FIRST_DELAY_S
            time.sleep(delay)
            delay = min(delay * 2, _LONGEST_DELAY_S)
            if self._ending:
                return True
            if not os.path.isdir(self._root):
                return False
            line = self._start_keeper()

    def _start_keeper(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        command = [sys.executable, "-m", "backburner.keeper", self._root, str(theirs.fileno())]
        pid = os.posix_spawn(
            sys.executable,
            [*command, STAY] if self._stay else command,
            os.environ,
            setsigdef=[signal.SIGCHLD],
            # Until it can hear it: else one that is told to leave would die, and be started again.
            setsigmask=[signal.SIGTERM],
        )
        self._know_keeper(pid)
        theirs.close()
        return ours

    def _take_line(self, fd: int) -> socket.socket:
        line = socket.socket(fileno=fd)
        credentials = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self._know_keeper(int.from_bytes(credentials[:4], sys.byteorder))  # it made the pair
        return line

    def _know_keeper(self, pid: int) -> None:
        with contextlib.suppress(OSError):  # it has died already
            self._keeper = os.pidfd_open(pid)
        if self._ending:
            self._ask_keeper()

    def _forget_keeper(self) -> None:
        if self._keeper is not None:
            os.close(self._keeper)
            self._keeper = None

    def _end(self, *_: object) -> None:
        self._ending = True
        self._ask_keeper()

    def _ask_keeper(self) -> None:
        if self._keeper is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._keeper, signal.SIGTERM)


def _step_out_of_any_job() -> None:
    """Whoever called may be a job of ours; its end must not be the end of the keeper."""
    from backburner.work.linux import set_child_subreaper
    from backburner.work.process.allowance import step_out_of_limits
    from backburner.work.process.cgroup import leave_job_cgroup
    from backburner.work.process.mark import clear_own_mark

    with contextlib.suppress(OSError):
        set_child_subreaper()
    leave_job_cgroup()
    step_out_of_limits()
    clear_own_mark()


def main(root: str, *words: str) -> int:
    """Guard the keeper of a home; ``words`` are a descriptor and STAY, where they are given."""
    _step_out_of_any_job()
    numbers = [int(word) for word in words if word.isdigit()]
    found = Guardian(root, stay=STAY in words).guard(numbers[0] if numbers else None)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
