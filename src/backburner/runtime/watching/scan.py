"""Looking for patterns in what is new of a job's streams: the part that runs in a thread.

RE2 lets go of the interpreter while it searches, so a hostile pattern does not hold up the keeper;
and a scan ends after a while, wherever it is, and goes on from there the next time.
"""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from backburner.runtime.watching.matches import Found
from backburner.work.log.lines import LineReader, Piece, Place
from backburner.work.log.pattern import LinePattern

_FOUND_AT_ONCE = 2000
"""More matches in one scan are a flood, and need not be remembered one by one."""
_KEPT = 1000
"""Characters of a line that a signal carries."""


@dataclass(slots=True)
class Seen:
    """What a scan has found."""

    ready: Found | None = None
    matches: list[Found] = field(default_factory=list[Found])
    more: bool = False
    """It stopped before the end."""


class _Stream:
    """One stream, as far as it was looked at."""

    def __init__(self, name: str, reader: LineReader, told: int, matched: int, known: int) -> None:
        self.name = name
        self.reader = reader
        self.place = reader.place
        """Everything before was looked at."""
        self.told = told
        """What matches before this is not told again."""
        self.matched = matched
        """The last line that matched: its other parts do not count again. -1 for none."""
        self.known = known
        self.waiting: deque[Piece] = deque()


class Scanner:
    """The streams of one attempt, and what to look for in them."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths
        self._streams: list[_Stream] = []
        self.ready: LinePattern | None = None
        self.match: LinePattern | None = None

    def begin(self, places: Mapping[str, list[int]], known: Mapping[str, int]) -> None:
        """Go on where a keeper before us stopped. ``known`` is how much there is by now."""
        for name, path in self._paths.items():
            offset, line, matched = places.get(name) or (0, 0, -1)
            there = known.get(name, 0)
            # What is to make it ready may have been written before the last match.
            place = Place(offset, line) if self.ready is None else Place()
            reader = LineReader(path, place, known=there)
            self._streams.append(_Stream(name, reader, offset, matched, there))

    @property
    def places(self) -> dict[str, list[int]]:
        """For `begin`, in another keeper."""
        return {
            stream.name: [stream.place.offset, stream.place.line, stream.matched]
            for stream in self._streams
        }

    @property
    def skipped(self) -> int:
        """Bytes that were gone before they could be looked at."""
        return sum(stream.reader.skipped for stream in self._streams)

    @property
    def unfinished(self) -> bool:
        """Whether a stream ends in the middle of a line."""
        return any(stream.reader.unfinished() is not None for stream in self._streams)

    def is_new(self, found: Found) -> bool:
        """Whether it was written since we came."""
        known = next(stream.known for stream in self._streams if stream.name == found.stream)
        return found.line >= known

    def scan(self, seconds: float, *, unfinished: bool = False, ended: bool = False) -> Seen:
        """Look at what is new. ``unfinished``: also at lines that are not whole yet; ``ended``:

        they never will be.
        """
        seen = Seen()
        deadline = time.monotonic() + seconds
        interesting = self._interesting()
        for stream in self._streams:
            stream.reader.interesting = interesting
            self._scan(stream, seen, deadline, unfinished=unfinished, ended=ended)
        return seen

    def _scan(
        self, stream: _Stream, seen: Seen, deadline: float, *, unfinished: bool, ended: bool
    ) -> None:
        more = True
        while more or stream.waiting:
            if time.monotonic() > deadline or len(seen.matches) > _FOUND_AT_ONCE:
                seen.more = True
                return
            if stream.waiting:
                piece = stream.waiting.popleft()
                self._test(stream, piece, seen)
                stream.place = piece.after
            else:
                more = self._read(stream, ended=ended)
        if unfinished and (piece := stream.reader.unfinished()) is not None:
            self._test(stream, piece, seen)

    def _read(self, stream: _Stream, *, ended: bool) -> bool:
        """Take what is new; whether there is more."""
        more = False
        with contextlib.suppress(OSError):  # moved at this moment, or gone: the next look tries
            pieces, more = stream.reader.read()
            stream.waiting.extend(pieces)
        if ended and not more:
            stream.waiting.extend(stream.reader.rest())
        if not stream.waiting:
            stream.place = stream.reader.place
        return more

    def _interesting(self) -> Callable[[str], bool] | None:
        """Of several lines: whether one of them can have what is looked for."""
        wanted = [pattern.anywhere for pattern in (self.ready, self.match) if pattern is not None]
        known = [anywhere for anywhere in wanted if anywhere is not None]
        if len(known) < len(wanted):
            return None
        return lambda text: any(anywhere(text) for anywhere in known)

    def _test(self, stream: _Stream, piece: Piece, seen: Seen) -> None:
        if self.ready is not None and seen.ready is None and self.ready.matches(piece.text):
            seen.ready = _found(stream, piece)
        if self.match is None or piece.line == stream.matched or piece.end <= stream.told:
            return
        if self.match.matches(piece.text):
            stream.matched = piece.line
            seen.matches.append(_found(stream, piece))


def _found(stream: _Stream, piece: Piece) -> Found:
    return Found(stream.name, piece.line, piece.text[:_KEPT])
