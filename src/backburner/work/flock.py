"""Asking whether somebody holds the lock (flock) of a file, which ends with its holder's life."""

import fcntl
import os

from backburner.work.plain_file import open_plain


def is_held(path: str) -> bool:
    """Whether it is locked now. FileNotFoundError where there is no such file.

    Asks for a shared lock: two who ask at once do not take each other for the holder.
    """
    fd = open_plain(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
