"""A write-ahead log of full size from the start: a commit then costs a third.

While the file grows, each fsync has to write the file system's own journal as well (0.65 ms here);
once SQLite goes round in a file that is long enough, it is the data alone (0.2 ms), and other files
can be made meanwhile. SQLite ignores what follows the last valid frame, so the rest may be zeros.
"""

import array
import contextlib
import os

import apsw

_PAGES = 1000
"""SQLite's own default: at so many pages a log is written back, and starts from its beginning."""

_ENOUGH = 900
"""At so many a writer writes it back: the next commit has to fit in."""

_FRAME = 4096 + 24
_HEADER = 32
SIZE = _HEADER + _PAGES * _FRAME

_ROOM = 16
"""Not where the disk has less than this many times the size to give."""


def grow(database: str) -> None:
    """Fill the log up with zeros. The caller holds the write lock, so that nobody appends."""
    with contextlib.suppress(OSError):  # it is quicker, no more
        fd = os.open(f"{database}-wal", os.O_WRONLY)
        try:
            size = os.fstat(fd).st_size
            space = os.fstatvfs(fd)
            if size < SIZE and space.f_bavail * space.f_frsize > _ROOM * SIZE:
                os.pwrite(fd, bytes(SIZE - size), size)  # not fallocate: that is journalled later
                os.fsync(fd)
        finally:
            os.close(fd)


def is_grown(database: str) -> bool:
    """Whether there is nothing to do."""
    try:
        return os.stat(f"{database}-wal").st_size >= SIZE
    except OSError:
        return False


class Log:
    """The log of a connection that writes: written back after a commit, and not by SQLite within

    one, where whoever waits for that commit would wait for twice as long.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._pages = 0
        connection.set_wal_hook(self._committed)

    def _committed(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def write_back(self) -> None:
        """Where it is long enough. The caller holds the write lock; who waited is answered."""
        if self._pages >= _ENOUGH:
            with contextlib.suppress(apsw.Error):  # a full disk; the next commit tries again
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._pages = 0


def keep(connection: apsw.Connection) -> None:
    """Do not remove the log with the last connection: each one has to know, whichever is last."""
    yes = array.array("i", [1])  # lighter than ctypes, for a pointer to an int
    connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, yes.buffer_info()[0])
