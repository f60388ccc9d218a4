"""How the record holds the output of a task: as pieces, each with its place in the stream. Pure.

New output is a new piece, so a copy costs what was written since the last one. Small pieces become
one now and then, so that there are never many; the oldest of the tail go when a bounded log would
not keep them any more.
"""

from collections.abc import Sequence

from backburner.model.values import value

BLOCK = 4096
"""A hole in a log begins and ends with one."""
_LARGEST = 64 * 1024
_WHOLE = 16 * 1024
"""A piece of this length is not put together with others any more."""
_OPEN = 64
"""So many that are shorter become one. For a job that says little that is `_WHOLE` bytes written
again with every so many copies, at most."""
_SEAM = 64

Placed = tuple[int, bytes]
"""Bytes of a stream, and where they begin in it."""


@value
class Piece:
    """One that the record has: where it begins, and how long it is."""

    at: int
    length: int

    @property
    def end(self) -> int:
        return self.at + self.length


@value
class Held:
    """What the record has of one stream."""

    total: int = 0
    """It has it up to there."""
    pieces: tuple[Piece, ...] = ()
    seam: bytes = b""
    """The last bytes: by them one sees that a log goes on, and was not emptied and written anew."""
    begun: bool = False
    """Whether the record knows of the stream."""

    @property
    def looks_from(self) -> int:
        """Where a read has to begin, to see the seam and what is new."""
        return self.total - len(self.seam)

    def goes_on(self, read: Sequence[Placed], total: int) -> bool:
        """Whether what is there now is what is held, and perhaps more."""
        if total < self.total:
            return False
        if not read or read[0][0] < self.looks_from:
            return True
        at, data = read[0]
        return data.startswith(self.seam[at - self.looks_from :][: len(data)])


@value
class Growth:
    """What is added to a stream."""

    stream: str
    before: Held
    after: Held
    new: Sequence[Placed]
    joins: int | None = None
    """The pieces from this place on become one with the first that is new."""
    drops: tuple[int, int] | None = None
    """The pieces that begin between these places go."""
    anew: bool = False
    """The job has emptied its log: nothing that was held counts any more."""

    @classmethod
    def none(cls, stream: str, held: Held) -> "Growth":
        """Nothing, where the record holds what is thought."""
        return cls(stream, held, held, ())


def growth(
    stream: str, held: Held, read: Sequence[Placed], total: int, *, head: int, tail: int
) -> Growth:
    """What a read from `Held.looks_from` on, or from before it, adds to what goes on.

    ``head`` and ``tail`` are what a bounded log keeps of its beginning and of its end.
    """
    tail_from = -(-head // BLOCK) * BLOCK
    keep_from = max(tail_from, (total - tail) // BLOCK * BLOCK)
    new = _cut(read, held.total, tail_from, keep_from)
    pieces, joins = _joined(held, new, tail_from)
    kept = tuple(each for each in pieces if each.at < tail_from or each.end > keep_from)
    drops = None
    if len(kept) < len(pieces):
        drops = tail_from, min((each.at for each in kept if each.at >= tail_from), default=total)
    after = Held(total, kept, _seam(held, new, total), begun=True)
    return Growth(stream, held, after, new, joins, drops)


def _cut(
    read: Sequence[Placed], since: int, tail_from: int, keep_from: int
) -> list[tuple[int, bytes]]:
    """What is new and kept, in pieces that lie in the head or in the tail."""
    found: list[tuple[int, bytes]] = []
    for begin, data in read:
        end = begin + len(data)
        for first, last in ((since, tail_from), (max(since, keep_from), end)):
            at, until = max(first, begin), min(last, end)
            while at < until:
                length = min(_LARGEST, until - at)
                found.append((at, data[at - begin : at - begin + length]))
                at += length
    return found


def _joined(held: Held, new: Sequence[Placed], tail_from: int) -> tuple[list[Piece], int | None]:
    """The pieces that there are then, and from where on those that are held become one."""
    pieces = list(held.pieces)
    added = [Piece(at, len(data)) for at, data in new]
    if not added:
        return pieces, None
    begin, length, count = added[0].at, added[0].length, 0
    for piece in reversed(pieces):
        if piece.length >= _WHOLE or piece.end != begin or piece.at < tail_from <= added[0].at:
            break
        begin, length, count = piece.at, length + piece.length, count + 1
    if not count or (count < _OPEN and length < _WHOLE):
        return pieces + added, None
    return [*pieces[:-count], Piece(begin, length), *added[1:]], begin


def _seam(held: Held, new: Sequence[Placed], total: int) -> bytes:
    seam, end = held.seam, held.total
    for at, data in new:
        seam, end = ((seam if at == end else b"") + data)[-_SEAM:], at + len(data)
    return seam if end == total else b""
