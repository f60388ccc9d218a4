"""The few Linux calls that Python does not offer: hole punching, inotify, child subreaper.

May touch libc through ctypes, which is loaded on first use so that a plain `backburner ls` does
not pay for it. Every failure is an OSError with its errno; other systems answer ENOSYS.
"""

import errno
import os
import struct
import sys
from enum import IntFlag
from functools import cache
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ctypes

FALLOC_FL_KEEP_SIZE = 0x01
FALLOC_FL_PUNCH_HOLE = 0x02
PR_SET_CHILD_SUBREAPER = 36

_EVENT = struct.Struct("iIII")  # wd, mask, cookie, length of the name that follows

_DRAIN_SIZE = 64 * 1024
"""One read takes some 4,000 events without a name; the kernel queues 16,384 unless told."""
_DRAIN_READS = 8
"""Writers can add events as fast as we take them; what is left is there for the next drain."""


class Watch(IntFlag):
    """What an inotify watch can tell; the values are the kernel's."""

    MODIFY = 0x002
    """The file was written or truncated."""
    ATTRIB = 0x004
    """What is said about it changed: also how many names it has, so a deletion while it is open."""
    MOVED_TO = 0x080
    """Something got its name in the watched folder by a rename."""
    CREATE = 0x100
    """Something was made in the watched folder."""
    DELETE_SELF = 0x400
    """The watched file or folder itself is gone."""
    MOVE_SELF = 0x800
    """The watched file or folder itself has a new name."""
    Q_OVERFLOW = 0x4000
    """Events were lost (wd is -1): look at everything that is watched."""
    IGNORED = 0x8000
    """This watch has ended, and its number may be given out again."""


@cache
def _libc() -> "ctypes.CDLL":
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "only Linux has this call")
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    # off_t is 64 bits wide on every 64-bit Linux, the only ones that we support.
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    libc.inotify_init1.argtypes = [ctypes.c_int]
    libc.inotify_add_watch.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
    libc.inotify_rm_watch.argtypes = [ctypes.c_int, ctypes.c_int]
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    return libc


def _call(name: str, *arguments: int | bytes, path: str | None = None) -> int:
    """Call a libc function that answers -1 on failure; a signal in between is no failure."""
    function = getattr(_libc(), name)
    import ctypes

    while True:
        answer: int = function(*arguments)
        if answer != -1:
            return answer
        code = ctypes.get_errno()
        if code != errno.EINTR:
            raise OSError(code, f"{name}: {os.strerror(code)}", path)


def punch_hole(fd: int, offset: int, length: int) -> None:
    """Free the blocks of a range; the file keeps its size, and the range reads as NULs.

    Raises OSError: EOPNOTSUPP where the file system cannot, ENOSYS where the system cannot.
    """
    _call("fallocate", fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length)


def set_child_subreaper() -> None:
    """Orphaned descendants of this process become its children, not those of process 1."""
    _call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Inotify:
    """One inotify instance, for use with a selector: wait for `fileno()`, then `drain()`."""

    __slots__ = ("_fd",)

    def __init__(self) -> None:
        self._fd = -1  # so that close() is safe when the next line fails
        self._fd = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)

    def add(self, path: str | os.PathLike[str], mask: int) -> int:
        """Watch a file or folder; the number that its events will carry.

        The same file again gives the same number, with the new mask.
        """
        return _call("inotify_add_watch", self._fd, os.fsencode(path), mask, path=os.fspath(path))

    def remove(self, wd: int) -> None:
        """End a watch. One that has ended already, because its file is gone, is no error."""
        try:
            _call("inotify_rm_watch", self._fd, wd)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise

    def fileno(self) -> int:
        return self._fd

    def drain(self) -> list[tuple[int, int]]:
        """The waiting events as (wd, mask), oldest first; an empty list when there is none."""
        events: list[tuple[int, int]] = []
        for _ in range(_DRAIN_READS):
            try:
                data = os.read(self._fd, _DRAIN_SIZE)
            except BlockingIOError:
                break
            at = 0
            while at < len(data):
                wd, mask, _cookie, name_length = _EVENT.unpack_from(data, at)
                events.append((wd, mask))
                at += _EVENT.size + name_length
        return events

    def close(self) -> None:
        """End every watch. A second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
