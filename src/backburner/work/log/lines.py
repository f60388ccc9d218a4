"""The lines of a growing stream, each once, for whoever looks for something in them.

Reads only what is new, and a bounded amount at a time, through the reader that knows the hole and
the moved log. It promises whole lines without terminal noise; a line that is too long comes in
pieces that overlap; what was gone before it could be read is counted.
"""

import os
from collections.abc import Callable, Iterator

from backburner.model.values import value
from backburner.work.log.bounds import LogBounds
from backburner.work.log.fold import fold, is_plain
from backburner.work.log.stream import read_stream

AT_ONCE = 32 * 1024
"""Bytes that one read takes."""
PIECE = 4096
"""Bytes of a line that are looked at together: with a hostile pattern these take some 60 ms."""
OVERLAP = 1024
"""What two pieces of a long line share, so that what lies across their border is found."""

_BLOCK = 2 * PIECE
"""Lines of so many bytes are looked at together, to see whether there is anything in them."""
_READ = LogBounds(AT_ONCE, 0, 0)


@value
class Place:
    """Where a reader stands: enough for another one to go on from there."""

    offset: int = 0
    """The first byte that was not given."""
    line: int = 0
    """Where the line begins that this byte is in."""


@value
class Piece:
    """A line, or a part of one."""

    line: int
    """Where the line begins: the same for all its parts."""
    text: str
    end: int
    """Where its bytes end."""
    after: Place
    """Where the reader stands after it."""


class LineReader:
    """Reads one stream. A redrawn line (a progress bar) counts as a line each time."""

    def __init__(self, path: str, place: Place | None = None, *, known: int = 0) -> None:
        self._path = path
        self._known = known
        self.place = place or Place()
        self._carry = b""
        """What was read after `place` and is no whole line yet."""
        self.interesting: Callable[[str], bool] | None = None
        """False of a text of several lines where none of them needs to be given."""
        self.skipped = 0
        """Bytes that were gone before they could be read, after the ``known`` first ones."""

    def read(self) -> tuple[list[Piece], bool]:
        """What is new, up to a limit, and whether there may be more now.

        OSError where the log cannot be read now.
        """
        end = self.place.offset + len(self._carry)
        found = read_stream(self._path, end, bounds=_READ)
        if found.emptied:
            end = self._start_at(found.start)
        pieces: list[Piece] = []
        for segment in found.segments:
            if segment.offset != end:
                self.skipped += max(0, segment.offset - max(end, self._known))
                pieces += self.rest()
                self._start_at(segment.offset)
            pieces += self._split(segment.data)
            end = segment.end
        # Not whether something was read: it may have become a hole meanwhile, and more comes after.
        return pieces, any(gap.dropped < gap.length for gap in found.gaps)

    def unfinished(self) -> Piece | None:
        """The line that is not whole yet. It will be given again."""
        if not self._carry:
            return None
        end = self.place.offset + len(self._carry)
        return Piece(self.place.line, _text(self._carry), end, self.place)

    def rest(self) -> list[Piece]:
        """The line that will never be whole, because the stream has ended."""
        data, self._carry = self._carry, b""
        if not data:
            return []
        line = self.place.line
        end = self.place.offset + len(data)
        self.place = Place(end, line)
        return [Piece(line, _text(data), end, self.place)]

    def _start_at(self, offset: int) -> int:
        self._carry = b""
        self.place = Place(offset, offset)
        return offset

    def _split(self, data: bytes) -> Iterator[Piece]:
        data = (self._carry + data).replace(b"\r", b"\n")
        self._carry = b""
        start = 0
        while end := data.rfind(b"\n", start, start + _BLOCK) + 1 or data.find(b"\n", start) + 1:
            block = data[start:end]
            start = end
            if self._is_dull(block):
                after = self.place.offset + len(block)
                self.place = Place(after, after)
                continue
            for line in block[:-1].split(b"\n"):
                yield from self._pieces(line, ended=True)
        yield from self._pieces(data[start:], ended=False)

    def _is_dull(self, block: bytes) -> bool:
        """Whether no line of it can be of interest: to find that out for many at once is cheap."""
        if self.interesting is None or len(block) > _BLOCK:
            return False
        text = block.decode(errors="replace")
        return is_plain(text) and not self.interesting(text)

    def _pieces(self, data: bytes, *, ended: bool) -> Iterator[Piece]:
        """The parts of a line of which only the last is kept back where it has not ended."""
        while len(data) > PIECE:
            start, line = self.place.offset, self.place.line
            self.place = Place(start + PIECE - OVERLAP, line)
            yield Piece(line, _text(data[:PIECE]), start + PIECE, self.place)
            data = data[PIECE - OVERLAP :]
        if not ended:
            self._carry = data
            return
        line = self.place.line
        after = self.place.offset + len(data) + 1
        self.place = Place(after, after)
        if data:
            yield Piece(line, _text(data), after, self.place)


def _text(data: bytes) -> str:
    return fold(data.decode(errors="replace"), repeats=False)


def size_of(paths: tuple[str, ...]) -> tuple[int, ...]:
    """The sizes of logs, which change with every write; one that is not there has none."""
    return tuple(_size(path) for path in paths)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
