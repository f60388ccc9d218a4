"""Opening what should be a plain file, in a folder where a job may have put anything in its place.

Nobody waits for the other end of a pipe, and no terminal becomes ours: whatever is no plain file is
an OSError, and each caller knows what that means for it.
"""

import errno
import os
import stat


def open_plain(path: str, flags: int = os.O_RDONLY, *, dir_fd: int | None = None) -> int:
    """A descriptor, also as the ``opener`` of `open`. What it makes is for its owner alone."""
    flags |= os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    fd = os.open(path, flags, 0o600, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no plain file", path)
    return fd
