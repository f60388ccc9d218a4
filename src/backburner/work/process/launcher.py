"""A small process of a worker that starts wrappers inside their cgroups.

A wrapper that joins its cgroup waits for the kernel there: 5 to 13 ms, where nobody else has just
joined one. One that is born in it waits for nothing, but that takes a call (`clone3`) which is not
for a process with threads. So one without threads makes it (`launching.py`), and the child is the
worker's own.

A start never depends on it: whatever goes wrong here, `NotLaunched` says that nothing runs.
"""

import contextlib
import errno
import marshal
import math
import os
import resource
import signal
import socket
import sys
import time
import zlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from backburner.model.values import value
from backburner.work.process import cgroup
from backburner.work.process.identity import read_proc
from backburner.work.process.mark import Mark

_PROGRAM = f"{os.path.dirname(os.path.abspath(__file__))}/launching.py"

_IDLE_S = 60.0
"""So long after the last start it ends, and a worker with nothing to do is as small as ever."""
_ANSWER_S = 1.0
_APART_S = 1.0
"""From one start of a launcher to the next, where they keep dying."""
_CROWD = 8
_CROWD_S = 0.1
"""After so many starts in so short a time wrappers join their cgroups instead: in a crowd they
hardly wait for that, and it takes a third less work."""

_LIMITS = 16
"""How many there are of one process (`getrlimit`)."""

_LONGEST = 128 * 1024 - 1
"""Bytes of one word or variable of a program."""
_MOST_BYTES = 1024 * 1024
"""Of all of them; and no more than a quarter of the stack that a program may have."""
_POINTER = 9
"""Bytes that each of them takes beside its own."""

_UNKNOWN_TO_KERNEL = (errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.E2BIG)
"""It is too old, or a container forbids the call: it will say the same to the next."""


class NotLaunched(Exception):
    """Nothing runs, and nothing will: start it in the other way."""


@value
class _Process:
    """A launcher that was started."""

    pid: int
    pidfd: int
    line: socket.socket
    inherited: object
    """What it has of the worker, and hands on."""

    def has_ended(self) -> bool:
        """Whether it is gone; it is yet to be collected."""
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PIDFD, self.pidfd, how) is not None
        except ChildProcessError:  # collected by the kernel, for one who ignores its children
            return True

    def end(self) -> None:
        """End it in whatever state it is, and collect it."""
        self.line.close()
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)
        os.close(self.pidfd)


class Launcher:
    """The launcher of one worker: there while it is of use, and not before the first start."""

    def __init__(self) -> None:
        self._process: _Process | None = None
        self._edition = _edition()
        self._is_ready = self._is_missed = self._is_useless = False
        self._last_begun = -math.inf
        self._starts = deque([-math.inf] * _CROWD, _CROWD)

    @property
    def pid(self) -> int | None:
        """Its process, where there is one."""
        return None if self._process is None else self._process.pid

    def is_ready(self) -> bool:
        """Whether it has said that it hears."""
        if self._process is not None and not self._is_ready:
            line = self._process.line
            with contextlib.suppress(OSError):  # not yet, or not any more
                self._is_ready = bool(line.recv(16))
                line.settimeout(_ANSWER_S)
        return self._is_ready

    def tend(self) -> None:
        """Start it where a start has missed it; collect it where it has ended."""
        process = self._process
        if process is not None and process.has_ended():
            self._is_useless = self._is_useless or not self.is_ready()  # it could not even begin
            self._let_go(process)
        soon = time.monotonic() - self._last_begun < _APART_S
        if self._is_missed and self._process is None and not self._is_useless and not soon:
            self._is_missed = False
            self._last_begun = time.monotonic()
            try:
                self._process = _begin(self._edition)
            except OSError:
                self._is_useless = True

    def takes_next(self) -> bool:
        """Whether the start that is made now is for it."""
        now = time.monotonic()
        is_crowded = now - self._starts[0] < _CROWD_S
        self._starts.append(now)
        if self._is_useless or is_crowded:
            return False
        process = self._process
        if process is not None and process.inherited != _inherited():
            self._let_go(process)
        self._is_missed = self._process is None
        return self.is_ready()

    def spawn(
        self,
        program: str,
        argv: list[str],
        environment: Mapping[str, str],
        descriptors: Mapping[int, int],
        *,
        mark: Mark,
        group: str,
    ) -> int:
        """Start a wrapper in the cgroup ``group``. Answers its pid; NotLaunched: it has none.

        ``descriptors`` says for each that it is to have which of ours it is.
        """
        process = self._process
        assert process is not None
        words = [os.fsencode(word) for word in argv]
        variables = {os.fsencode(name): os.fsencode(text) for name, text in environment.items()}
        if not _are_fit([*words, *(b"%b=%b" % each for each in variables.items())], variables):
            raise NotLaunched
        command = marshal.dumps((os.fsencode(program), words, variables, mark))
        try:
            pid, why = _ask(process.line, command, descriptors, group)
        except (OSError, EOFError) as error:
            # It may have done it all the same. What it has started is in that cgroup, alone: it
            # waits for a word that it will not get.
            self._let_go(process)
            self._is_missed = True
            for pid in cgroup.members(group):
                _collect(pid)
            raise NotLaunched from error
        if pid:
            return pid
        if why in _UNKNOWN_TO_KERNEL:
            self._is_useless = True
            self._let_go(process)
        raise NotLaunched(os.strerror(why))

    def _let_go(self, process: _Process) -> None:
        process.end()
        self._process, self._is_ready = None, False

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._let_go(self._process)


def is_launcher(words: Sequence[str]) -> bool:
    """Whether this is the command line of a launcher, or of its child before it is a wrapper."""
    return len(words) > 3 and words[3] == _PROGRAM  # noqa: PLR2004 - as `_spawn` has it


def _edition() -> int:
    """Of the program, as it is now: it is read again for each launcher, and may be newer then."""
    try:
        with open(_PROGRAM, "rb") as program:
            return zlib.crc32(program.read())
    except OSError:  # it lies in an archive, and cannot be started
        return 0


def _begin(edition: int) -> _Process:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)  # until it is ready, for which nobody waits
    try:
        with theirs:
            pid = _spawn(theirs.fileno(), edition)
        try:
            return _Process(pid, os.pidfd_open(pid), ours, _inherited())
        except BaseException:
            _collect(pid)
            raise
    except BaseException:
        ours.close()
        raise


def _spawn(line: int, edition: int) -> int:
    return os.posix_spawn(
        sys.executable,
        # -I and -S: neither variables nor site-packages concern it.
        [sys.executable, "-I", "-S", _PROGRAM, str(_IDLE_S), str(edition), cgroup.LAUNCHER],
        # Without a sign of a task, where the worker itself was started by one.
        {name: text for name, text in os.environ.items() if name.startswith("LD_")},
        file_actions=[
            (os.POSIX_SPAWN_DUP2, line, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ],
        setsid=True,  # no Ctrl-C of a terminal reaches it
        setsigmask=[],
    )


def _inherited() -> object:
    """What a process has of the one that starts it, and that this one may have changed."""
    rights = os.getresuid(), os.getresgid(), os.getgroups()
    limits = [resource.getrlimit(number) for number in range(_LIMITS)]
    nice, cores = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getaffinity(0)
    return rights, limits, nice, cores, os.sched_getscheduler(0), read_proc("self", "oom_score_adj")


def _stack() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _are_fit(texts: list[bytes], names: Iterable[bytes]) -> bool:
    """Whether the kernel takes a program with them for certain: a launcher does not say why not."""
    room = min(_MOST_BYTES, _stack() // 4)
    return (
        sum(len(text) + _POINTER for text in texts) < room
        and all(len(text) < _LONGEST and b"\0" not in text for text in texts)
        and all(name and b"=" not in name for name in names)
    )


def _ask(
    line: socket.socket, command: bytes, descriptors: Mapping[int, int], group: str
) -> tuple[int, int]:
    """The pid or 0, and why there is none or 0. OSError, EOFError: that is not known."""
    with contextlib.ExitStack() as stack:
        folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
        stack.callback(os.close, folder)
        # An environment is longer than a message may be.
        payload = os.memfd_create("backburner-launch")
        stack.callback(os.close, payload)
        with open(payload, "wb", closefd=False) as file:
            file.write(command)
        socket.send_fds(line, [bytes(descriptors)], [payload, folder, *descriptors.values()])
    answer = line.recv(64)
    if not answer:
        raise EOFError
    pid, why = map(int, answer.split())
    return pid, why


def _collect(pid: int) -> None:
    """End a child of ours that has nothing to do."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
