"""Keeping a growing log within its bounds, while the job goes on writing to it.

May touch the log of one task and the files beside it. It promises that head and tail are kept,
that a reader never sees half a block of NULs, and that a keeper can be killed at any moment. One
bounder for a log at a time: the keeper's lock sees to that.
"""

import errno
import os
import stat

from backburner.work import linux
from backburner.work.log import moved
from backburner.work.log.bounds import BoundResult, LogBounds
from backburner.work.plain_file import open_plain

PAGE = 4096
"""The least that a file system frees; some name a smaller block than the page they cache."""

_CANNOT_PUNCH = {errno.EOPNOTSUPP, errno.ENOSYS}


class LogBounder:
    """Bounds one stream; small, because a keeper may have thousands, and without a descriptor.

    `copying` makes it copy and cut from the start, as where holes cannot be punched.
    """

    __slots__ = ("_bounds", "_copying", "_hole_end", "_path")

    def __init__(
        self,
        path: str | os.PathLike[str],
        bounds: LogBounds | None = None,
        *,
        copying: bool = False,
    ) -> None:
        self._path = os.fspath(path)
        self._bounds = bounds or LogBounds()
        # Who bounded this log before us may have had to copy; then there is a map.
        self._copying = copying or moved.exists(self._path)
        self._hole_end: int | None = None  # not known: a keeper before us may have punched

    def bound(self, *, final: bool = False) -> BoundResult:
        """Free the middle if that is worth a call; cheap (one stat) if it is not.

        `final`, once the job has ended, goes down to head and tail, but for parts of a block. No
        log is an empty log. Raises OSError where it has to copy and the disk is full, or the job
        holds the lock, and where the job has put something else in the place of a file.
        """
        if self._copying:
            return self._copy(final)
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return BoundResult(0, 0)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", self._path)
        size = status.st_size
        block = max(status.st_blksize, PAGE)
        # Inwards to whole blocks: of a part of a block the kernel would only write NULs over it.
        start = -(-self._bounds.head // block) * block
        end = (size - self._bounds.tail) // block * block
        if end <= start:
            self._hole_end = start
            return BoundResult(size, 0)
        try:
            hole_end = self._punch(start, end, size, final=final)
        except OSError as error:
            if error.errno not in _CANNOT_PUNCH:
                raise
            self._copying = True
            return self._copy(final)
        return BoundResult(size, hole_end - start)

    def _punch(self, start: int, end: int, size: int, *, final: bool) -> int:
        """Make the hole larger if that is worth it; where it ends."""
        if self._hole_end is None:
            self._hole_end = max(start, _hole_end(self._path, start))
        elif self._hole_end > size:  # the job emptied the file itself (`> /dev/stdout` does)
            self._hole_end = start
        least = 1 if final else max(1, self._bounds.slack)
        if end - self._hole_end >= least:
            fd = open_plain(self._path, os.O_RDWR)
            try:
                # At the end all of it once more: an emptied file may have grown unseen.
                begin = start if final else self._hole_end
                linux.punch_hole(fd, begin, end - begin)
            finally:
                os.close(fd)
            self._hole_end = end
        return self._hole_end

    def _copy(self, final: bool) -> BoundResult:
        return moved.shorten(self._path, self._bounds, final=final)


def _hole_end(path: str, start: int) -> int:
    """Where the hole that begins at `start` ends; `start` itself if there is data."""
    fd = open_plain(path)
    try:
        return os.lseek(fd, start, os.SEEK_DATA)
    except OSError as error:
        if error.errno not in {errno.ENXIO, errno.EINVAL}:
            raise
        return start
    finally:
        os.close(fd)
