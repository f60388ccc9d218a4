"""The holder's program: starts the job with its pipe or terminal, serves it, ends as it ended.

It lives on when keeper, guardian and application die. Signals that end programs are not for it: the
tree gets them as a whole, and the job decides.
"""

import errno
import os
import signal

from backburner.work.holder.frames import SOCKET_FD
from backburner.work.holder.source import Pipe, Terminal

_FIRST_OF_LIBC = 32
"""The signals from here on belong to libc or were never touched."""

_CANNOT_EXECUTE = 126
_NOT_FOUND = 127
"""What every shell says."""


def main(arguments: list[str]) -> None:
    """Hold a job: `pipe|pty ROWS COLUMNS COMMAND…`. Does not return."""
    kind, rows, columns, *command = arguments
    for number in (
        *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1),
        *(signal.SIGUSR2, signal.SIGALRM, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
        signal.SIGXCPU,
    ):
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(SOCKET_FD, False)
    try:
        source = Terminal(int(rows), int(columns)) if kind == "pty" else Pipe()
        pid = os.fork()
    except OSError as error:
        os.write(2, f"backburner: no process or terminal can be had: {error}\n".encode())
        os._exit(_CANNOT_EXECUTE)
    if pid == 0:
        _become(source, command)
    source.leave_child()
    _lift_limits()
    # Only now, because it takes as long as everything before it, and the job runs already.
    from backburner.work.holder.service import Service

    _end_as(Service(source, pid, SOCKET_FD).serve())


def _become(source: Pipe | Terminal, command: list[str]) -> None:
    """In the child: the command, with everything as the wrapper has left it."""
    try:
        source.enter_child()
        for number in range(1, _FIRST_OF_LIBC):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
        _execute(command)
    finally:  # also when an exception passes: there must not be two holders
        os._exit(_CANNOT_EXECUTE)


def _execute(command: list[str]) -> None:
    # From the kernel: Python itself sets LC_CTYPE where it starts in the C locale.
    with open("/proc/self/environ", "rb") as file:
        pairs = [pair.partition(b"=") for pair in file.read().split(b"\0")]
    environment = {name: value for name, equals, value in pairs if name and equals}
    program = command[0]
    places = [program]
    if "/" not in program:
        folders = os.fsdecode(environment.get(b"PATH", os.defpath.encode())).split(":")
        places = [f"{folder or '.'}/{program}" for folder in folders]
    failure = OSError(errno.ENOENT, "not found")
    for place in places:
        try:
            os.execve(place, command, environment)  # noqa: S606 - that is what it is for
        except OSError as error:
            if error.errno == errno.ENOEXEC:  # a script without its first line
                os.execve("/bin/sh", ["sh", place, *command[1:]], environment)  # noqa: S606
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                failure = error
    os.write(2, f"{program}: {failure.strerror}\n".encode(errors="replace"))
    os._exit(_NOT_FOUND if failure.errno == errno.ENOENT else _CANNOT_EXECUTE)


def _lift_limits() -> None:
    """What the job may use is not for the holder, as far as that can be."""
    import resource

    for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU):
        _, hard = resource.getrlimit(what)
        resource.setrlimit(what, (hard, hard))


def _end_as(status: int) -> None:
    """End as the job ended, so that the wrapper tells a signal from an exit code."""
    if os.WIFSIGNALED(status):
        import resource

        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core is enough
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128)
