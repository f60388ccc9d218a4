"""The program of a launcher: starts wrappers as children of the worker, each born in its cgroup.

It runs by itself, without the package, and imports next to nothing: it is there to be small. It has
one thread, so that it may call `clone3`, of which the C library knows nothing. It keeps nothing of
what it was handed, and ends with the worker, or when nobody has asked it for anything for a while.
"""

import _socket  # what `socket` adds to it takes longer to load than all the rest
import ctypes
import fcntl
import marshal
import os
import resource
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself is larger than all of this
    from typing import NoReturn

_ABOVE_TARGETS = 10
"""Descriptors from here on stand where none of a wrapper is to be."""
_MOST_DESCRIPTORS = 16

_CLONE3 = 435
"""The number of the call, the same on every architecture that matters."""
_CLONE_PARENT = 0x8000
_CLONE_INTO_CGROUP = 0x2_0000_0000
_ARGUMENTS = ctypes.c_uint64 * 11
_FLAGS, _CGROUP = 0, 10
"""Where these stand in its arguments. All others are zero."""

_RTTIME = 15
"""The limit that is the mark (`mark.py`)."""
_LAST_SIGNAL = 31
"""Those after it are for real-time programs, and nobody's but theirs."""
_NOT_EXECUTED = 127

_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def main(idle_s: float) -> None:
    """Serve the worker, whose line is the standard input, until nobody has asked for so long."""
    line = _take_line()
    for number in range(1, _LAST_SIGNAL + 1):  # Python ignores some, and its children would too
        _libc.signal(number, None)
    line.settimeout(idle_s)
    line.send(b"ready")
    try:
        while request := _receive(line):
            line.send(b"%d %d" % _carry_out(*request))
    except TimeoutError:
        pass


def _take_line() -> _socket.socket:
    """The line to the worker; of its other descriptors none is kept."""
    line = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, _ABOVE_TARGETS)
    for name in os.listdir("/proc/self/fd"):
        if int(name) != line:
            os.closerange(int(name), int(name) + 1)  # without complaint: that of the list is gone
    while os.open(os.devnull, os.O_RDWR) < _ABOVE_TARGETS - 1:
        pass  # all below are taken, and what is received is above
    return _socket.socket(fileno=line)


def _receive(line: _socket.socket) -> tuple[bytes, list[int]] | None:
    """Which descriptors a wrapper is to have, and the descriptors; None: the worker is gone."""
    room = _socket.CMSG_SPACE(_MOST_DESCRIPTORS * 4)
    targets, extra, _, _ = line.recvmsg(_MOST_DESCRIPTORS, room, _socket.MSG_CMSG_CLOEXEC)
    if not targets:
        return None
    return targets, [fd for _, _, data in extra for fd in memoryview(data).cast("i")]


def _carry_out(targets: bytes, descriptors: list[int]) -> tuple[int, int]:
    """The pid, or 0; and why there is none, or 0. Nothing of the request is kept.

    What the child does is not waited for: meanwhile the worker writes that it has started.
    """
    try:
        payload, group, *others = descriptors
        sources = dict(zip(targets, others, strict=True))  # none was cut off for lack of room
        pid = _clone_into(group)
        if pid == 0:
            _become(payload, sources)
        return (pid, 0) if pid > 0 else (0, ctypes.get_errno())
    finally:
        for fd in descriptors:
            os.close(fd)


def _clone_into(group: int) -> int:
    """Fork into a cgroup. The child is the worker's, and is waited for by the worker."""
    arguments = _ARGUMENTS()
    arguments[_FLAGS] = _CLONE_PARENT | _CLONE_INTO_CGROUP
    arguments[_CGROUP] = group
    size = ctypes.c_size_t(ctypes.sizeof(arguments))
    return _libc.syscall(ctypes.c_long(_CLONE3), ctypes.byref(arguments), size)


def _become(payload: int, sources: dict[int, int]) -> "NoReturn":
    """In the child: become the wrapper. Where that cannot be it ends without having run a line.

    Only here is the environment read: nothing of it is left in the memory of the launcher.
    """
    try:
        text = os.pread(payload, os.fstat(payload).st_size, 0)
        # The worker's own words, and of the same Python.
        program, argv, environment, mark = marshal.loads(text)  # noqa: S302
        for target, source in sources.items():
            os.dup2(source, target)
        os.setsid()
        _, hard = resource.getrlimit(_RTTIME)
        if hard == resource.RLIM_INFINITY:
            resource.setrlimit(_RTTIME, (mark, hard))
        os.execve(program, argv, environment)  # noqa: S606 - what the worker would spawn
    finally:
        os._exit(_NOT_EXECUTED)


if __name__ == "__main__":
    with open(__file__, "rb") as program:
        edition = zlib.crc32(program.read())
    if sys.argv[2] == str(edition):  # else the worker is of another release, and asks otherwise
        main(float(sys.argv[1]))
