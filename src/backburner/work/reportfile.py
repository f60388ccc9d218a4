"""Reading the report of a job, from where the record is: bounded, whatever the job does with it.

Only what is new is read, a piece at a time. Disk space of what was read is freed, and a job that
writes faster than anybody could read loses the middle of it. The file is the job's: it may be a
pipe, a link or a folder, be cut, or never come; none of that is waited for or followed.
"""

import contextlib
import os
import stat

from backburner.model.values import value
from backburner.work import linux
from backburner.work.report import LATEST_COUNTS, LINE_MAX_BYTES, Item, Mistake, parse

_PIECE = LINE_MAX_BYTES + 64 * 1024
"""Read at once: the longest line has room in it."""

_LINES = 2000
"""Understood at once: the keeper has other jobs too."""

BACKLOG_MAX_BYTES = 16 * 1024 * 1024
"""More than this is never unread: past it, only the last piece is."""

_FREE_AFTER = 1024 * 1024
_BLOCK = 4096

_REPEATED = (b'{"status"', b'{"progress"')
"""As our own commands begin these lines: where a later one follows, they need not be parsed."""


@value
class Said:
    """One thing that was said, and how far the report is with it."""

    item: Item
    end: int


class ReportFile:
    """The report of one attempt."""

    def __init__(self, path: str, position: int) -> None:
        self._path = path
        self.position = position
        """So much was read."""
        self.more = False
        """Whether the last read has left something that could be read."""
        self._size = -1
        self._freed = 0
        self._dropped = 0
        self._inside_line = False

    def look(self) -> bool:
        """Whether there is something new; keeps it bounded."""
        try:
            status = os.lstat(self._path)
        except OSError:
            return False
        if status.st_size == self._size:
            return False
        self._size = status.st_size
        if stat.S_ISREG(status.st_mode) and status.st_size - self.position > BACKLOG_MAX_BYTES:
            self._drop(status.st_size)
        return True

    def read(self, *, last: bool = False) -> list[Said]:
        """What is new, a piece of it; `more` says whether that was not all.

        ``last`` says that nobody writes any more: a line without its end counts, too.
        """
        self.more = False
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        except OSError as error:
            return [self._wrong("file", f"it cannot be read: {error.strerror}")]
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                return [self._wrong("file", "it is not a plain file")]
            if status.st_size < self.position:
                self.position = self._freed = 0  # the job has begun it anew
                self._inside_line = False
            data = os.pread(fd, _PIECE, self.position)
            if data.startswith(b"\0"):
                data = self._after_hole(fd, status.st_size)
        except OSError as error:
            return [self._wrong("file", f"it cannot be read: {error.strerror}")]
        finally:
            os.close(fd)
        self.more = len(data) == _PIECE
        return self._take(data, last=last)

    def free(self) -> None:
        """What was read so far is in the record: its disk space is not needed any more."""
        if self.position - self._freed > _FREE_AFTER:
            self._free()

    def _after_hole(self, fd: int, size: int) -> bytes:
        """Of what a keeper before us has freed the rest of a line is left."""
        try:
            self.position = os.lseek(fd, self.position, os.SEEK_DATA)
        except OSError:  # ENXIO: there is no more
            self.position = size
        self._inside_line = True
        return os.pread(fd, _PIECE, self.position)

    def _take(self, data: bytes, *, last: bool) -> list[Said]:
        said: list[Said] = []
        if self._dropped:
            lost = f"{self._dropped // 2**20} MiB were written faster than they could be read"
            said.append(self._wrong("flood", f"{lost} and are lost"))
            self._dropped = 0
        if self._inside_line:
            rest, newline, data = data.partition(b"\n")
            self.position += len(rest) + len(newline)
            self._inside_line = not newline
        begin = self.position
        lines = data.split(b"\n")
        unfinished = lines.pop()
        if not lines and len(unfinished) > LINE_MAX_BYTES:
            self.position += len(unfinished)
            self._inside_line = True
            limit = f"{LINE_MAX_BYTES // 1024} KiB"
            said.append(self._wrong("line", f"a line is longer than {limit} and was left out"))
        elif last and unfinished and not self.more:
            lines.append(unfinished)
        spans: list[tuple[bytes, int]] = []
        if len(lines) > _LINES and not _is_repetitive(lines):
            del lines[_LINES:]
            self.more = True
        for line in lines:
            # Not past the end of the file, where the last line has no end.
            self.position = min(self.position + len(line) + 1, begin + len(data))
            spans.append((line, self.position))
        return said + _understand(spans)

    def _wrong(self, kind: str, text: str) -> Said:
        return Said(Mistake(kind, f"report: {text}"), self.position)

    def _drop(self, size: int) -> None:
        new = size - LINE_MAX_BYTES
        self._dropped += new - self.position
        self.position = new
        self._inside_line = True
        self._free()

    def _free(self) -> None:
        """Free the disk space of what was read."""
        end = self.position // _BLOCK * _BLOCK
        with contextlib.suppress(OSError):
            fd = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                linux.punch_hole(fd, 0, end)
                self._freed = end
            except OSError:  # not on this file system: it begins anew, and unread lines are lost
                self._dropped += os.fstat(fd).st_size - self.position
                os.ftruncate(fd, 0)
                self.position = self._freed = 0
                self._inside_line = False
            finally:
                os.close(fd)


def drain(path: str) -> None:
    """The task has ended, and nobody reads its report: what is still written there goes."""
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode) and status.st_blocks * 512 > _FREE_AFTER:
            os.truncate(path, 0)


def _is_repetitive(lines: list[bytes]) -> bool:
    """Whether so many lines can be dealt with at once, because most need not be understood."""
    return sum(not line.startswith(_REPEATED) for line in lines) <= _LINES


def _understand(spans: list[tuple[bytes, int]]) -> list[Said]:
    """What the lines say, without what a later one of them says better."""
    said: list[Said] = []
    newer: set[type[Item] | bytes] = set()
    for line, end in reversed(spans):
        if not line.strip() or any(line.startswith(each) for each in _REPEATED if each in newer):
            continue
        item = parse(line)
        if type(item) in newer:
            continue
        if isinstance(item, LATEST_COUNTS):
            newer.add(type(item))
            newer.update(each for each in _REPEATED if line.startswith(each))
        said.append(Said(item, end))
    said.reverse()
    return said
