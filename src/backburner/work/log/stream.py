"""Reading the bytes of one stream by position, while its log grows and its middle disappears.

May read the log and the files beside it. It promises the job's own bytes or the word that they
are gone, never the NULs of a hole; and never more in memory than the bounds of a log.
"""

import contextlib
import errno
import os
import time
from collections.abc import Iterator

from backburner.model.values import value
from backburner.work.log import moved
from backburner.work.log.bounds import LogBounds
from backburner.work.plain_file import open_plain

_TRIES = 1000
"""A log that was moved while it was read is read anew. A read takes about a millisecond."""
PATIENCE_S = 5.0
"""Seconds to wait for moves to end, which take some milliseconds where the machine is not busy."""
_NAP = 0.001


@value
class Segment:
    """Bytes that are there; `offset` is their position in the stream."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@value
class Gap:
    """A range that is not given."""

    offset: int
    length: int
    dropped: int
    """Bytes of it that are gone; the rest could be read, but would be too much at once."""


@value
class StreamRead:
    """What one read of a stream found, between `start` and `end`."""

    start: int
    """Where it began: the position asked for, unless the stream ends before it."""
    end: int
    """Where the next read has to begin."""
    total: int
    """Bytes that the job has written to the stream."""
    dropped: int
    """Bytes between `start` and `end` that are gone."""
    segments: tuple[Segment, ...] = ()
    gaps: tuple[Gap, ...] = ()
    copied: bool = False
    """The log was copied and cut, so that a little may be missing without being counted."""
    emptied: bool = False
    """The job itself emptied its log since the position asked for."""


@value
class _Part:
    """A range of the stream and where its bytes are."""

    fd: int
    physical: int
    offset: int
    length: int

    def clip(self, start: int, end: int) -> "_Part":
        """What of it lies between two positions; of length 0 if nothing does."""
        first = min(max(start, self.offset), self.offset + self.length)
        last = max(first, min(end, self.offset + self.length))
        return _Part(self.fd, self.physical + first - self.offset, first, last - first)


@value
class _View:
    """The open files of a stream, and what was true of them at one moment."""

    parts: list[_Part]
    live_at: int
    total: int
    copied: bool
    covered: bytes
    """Bytes of the job in whose place, at `live_at`, there may be a token."""


def read_stream(
    path: str | os.PathLike[str],
    offset: int = 0,
    *,
    last: int | None = None,
    bounds: LogBounds | None = None,
    patience_s: float = PATIENCE_S,
) -> StreamRead:
    """The bytes from a position on, or only the `last` of them.

    What is more than a bounded log can hold is left out in the middle. No log is an empty log.
    Raises OSError where it cannot be read, or is no plain file: a job can put anything in its
    place. BlockingIOError if the log was moved at every one of many tries, or for longer than the
    patience lasts: whoever moves logs itself has none, for nobody else does.
    """
    path = os.fspath(path)
    deadline = time.monotonic() + patience_s
    tries = 0
    while tries < _TRIES and (not tries or time.monotonic() < deadline):
        text = moved.read_map_text(path)
        found = moved.parse_map(text)
        if found.state is not moved.State.STEADY and moved.is_moving(path):
            if time.monotonic() >= deadline:
                break
            time.sleep(_NAP)
            continue
        tries += 1
        try:
            with contextlib.ExitStack() as files:
                log = _open(path, files)
                cut = _was_cut(log, found)
                view = _look(path, log, found, files, cut=cut, offset=offset)
                read = _read(view, offset, last, bounds or LogBounds())
                # The token goes in the instant of the cut, and the map only follows.
                true = _was_cut(log, found) == cut
        except FileNotFoundError:
            if not text:
                return StreamRead(start=offset, end=offset, total=0, dropped=0)
            continue  # a tail file that was replaced meanwhile
        if true and moved.read_map_text(path) == text:
            return read
    raise OSError(errno.EAGAIN, "the log is moved again and again: read it later", path)


def _was_cut(log: int, found: moved.LogMap) -> bool:
    return found.state is moved.State.MOVING and not moved.token_is_there(log, found)


def _open(path: str, files: contextlib.ExitStack) -> int:
    fd = open_plain(path)
    files.callback(os.close, fd)
    return fd


def _look(
    path: str,
    log: int,
    found: moved.LogMap,
    files: contextlib.ExitStack,
    *,
    cut: bool,
    offset: int,
) -> _View:
    layout = moved.layout_when_emptied(path, found) if cut else found.layout
    parts: list[_Part] = []
    if layout.tail:
        parts.append(_Part(_open(moved.head_path(path), files), 0, 0, layout.head))
        tail = _open(moved.tail_path(path, layout), files)
        length = min(os.fstat(tail).st_size, layout.live_at - layout.tail_at)
        parts.append(_Part(tail, 0, layout.tail_at, length))
    size = os.fstat(log).st_size
    total = layout.live_at + size
    first = offset - layout.live_at if layout.live_at < offset <= total else 0
    parts += [
        _Part(log, start, layout.live_at + start, end - start)
        for start, end in _data_ranges(log, first, size)
    ]
    covered = b"" if cut else bytes.fromhex(found.covered)
    return _View(parts, layout.live_at, total, bool(layout.tail), covered)


def _data_ranges(fd: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The ranges between two places in a file that are no holes."""
    while start < end:
        try:
            data = os.lseek(fd, start, os.SEEK_DATA)
            hole = os.lseek(fd, data, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole up to the end, or the file became shorter
                return
            if error.errno != errno.EINVAL:
                raise
            data, hole = start, end  # a file system that knows no holes
        if data < end:
            yield data, min(hole, end)
        start = hole


def _read(view: _View, offset: int, last: int | None, bounds: LogBounds) -> StreamRead:
    total = view.total
    start = offset if offset <= total else view.live_at
    begin = start if last is None else max(start, total - last)
    wanted, unread = _choose([part.clip(begin, total) for part in view.parts], bounds)
    segments = _joined(segment for part in wanted for segment in _bytes_of(part, view))
    gaps = list(_gaps(segments, unread, begin, total))
    skipped = sum(part.clip(start, begin).length for part in view.parts)
    return StreamRead(
        start=start,
        end=total,
        total=total,
        dropped=begin - start - skipped + sum(gap.dropped for gap in gaps),
        segments=tuple(segments),
        gaps=tuple(gaps),
        copied=view.copied,
        emptied=offset > total and not view.copied,
    )


def _choose(parts: list[_Part], bounds: LogBounds) -> tuple[list[_Part], list[_Part]]:
    """What to read, and what to leave out because all of it would be too much."""
    everything = sum(part.length for part in parts)
    if everything <= bounds.most:
        return parts, []
    wanted: list[_Part] = []
    unread: list[_Part] = []
    before = 0
    for part in parts:
        first = part.offset + min(part.length, max(0, bounds.head - before))
        second = part.offset + min(part.length, max(0, everything - bounds.tail - before))
        second = max(first, second)
        wanted += [part.clip(0, first), part.clip(second, second + part.length)]
        unread.append(part.clip(first, second))
        before += part.length
    return wanted, unread


def _bytes_of(part: _Part, view: _View) -> Iterator[Segment]:
    """Read a part, and give of it what has not become a hole meanwhile."""
    chunks: list[bytes] = []
    done = 0
    while done < part.length:
        chunk = os.pread(part.fd, part.length - done, part.physical + done)
        if not chunk:
            break  # the job emptied its log
        chunks.append(chunk)
        done += len(chunk)
    data = b"".join(chunks)
    overlap = view.covered[max(0, part.offset - view.live_at) :]
    if overlap and part.offset >= view.live_at:
        data = overlap[: len(data)] + data[len(overlap) :]
    for start, end in _data_ranges(part.fd, part.physical, part.physical + done):
        first = start - part.physical
        yield Segment(part.offset + first, data[first : first + end - start])


def _joined(segments: Iterator[Segment]) -> list[Segment]:
    """Neighbours as one: a character may lie across two files."""
    joined: list[Segment] = []
    for segment in segments:
        if joined and joined[-1].end == segment.offset:
            before = joined.pop()
            joined.append(Segment(before.offset, before.data + segment.data))
        elif segment.data:
            joined.append(segment)
    return joined


def _gaps(segments: list[Segment], unread: list[_Part], begin: int, end: int) -> Iterator[Gap]:
    for segment in [*segments, Segment(end, b"")]:
        if segment.offset > begin:
            length = segment.offset - begin
            readable = sum(part.clip(begin, segment.offset).length for part in unread)
            yield Gap(begin, length, length - readable)
        begin = segment.end
