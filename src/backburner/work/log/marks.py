"""Text in which lines of ours say what is missing, and the cut to a number of characters. Pure."""

from backburner.model.values import value
from backburner.work.log.stream import Gap

_HEAD_SHARE = 4
"""A quarter for the head, the rest for the tail: a job says at its end how it went."""
_ROOM_FOR_MARK = 200
"""More than any mark is long."""

_THOUSAND = 1000
"""Between two units: decimal ones, as disks are sold."""

_COPIED = " (the log was copied and cut: a few lines more may be missing)"
_EMPTIED = "… the job emptied its own log here …\n"


@value
class Mark:
    """Where in the text a line of ours is, and how much it stands for."""

    start: int
    end: int
    dropped: int = 0
    unread: int = 0


class MarkedText:
    """Text that is put together from what was read and from lines about what was not."""

    __slots__ = ("_marks", "_pieces", "copied", "length")

    def __init__(self, *, copied: bool) -> None:
        self.copied = copied
        self._pieces: list[str] = []
        self._marks: list[Mark] = []
        self.length = 0

    def add(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self.length += len(text)

    def add_gap(self, gap: Gap) -> None:
        unread = gap.length - gap.dropped
        said = [f"{byte_count(gap.dropped)} of output dropped here"] if gap.dropped else []
        if unread:
            said.append(f"{byte_count(unread)} {'' if said else 'of output '}left out here")
        note = _COPIED if self.copied and gap.dropped else ""
        self._add_mark(f"… {', '.join(said)}{note} …\n", gap.dropped, unread)

    def add_emptied(self) -> None:
        self._add_mark(_EMPTIED, 0, 0)

    def text(self) -> str:
        return "".join(self._pieces)

    def shortened(self, most: int) -> str:
        """At most that many characters: head and tail, and between them what is left out."""
        text = self.text()
        if len(text) <= most:
            return text
        room = most - _ROOM_FOR_MARK
        if room <= _ROOM_FOR_MARK:  # too small to say anything: the end of it
            return text[len(text) - most :]
        first = _line_end_before(text, room // _HEAD_SHARE)
        last = _line_start_after(text, len(text) - (room - room // _HEAD_SHARE))
        hidden = [mark for mark in self._marks if mark.start < last and mark.end > first]
        first = min([first, *(mark.start for mark in hidden)])
        last = max([last, *(mark.end for mark in hidden)])
        characters = last - first - sum(mark.end - mark.start for mark in hidden)
        said = [f"{characters:,} characters left out"] if characters else []
        if dropped := sum(mark.dropped for mark in hidden):
            said.append(f"{byte_count(dropped)} of output dropped")
        if unread := sum(mark.unread for mark in hidden):
            said.append(f"{byte_count(unread)} of output not read")
        note = _COPIED if self.copied and dropped else ""
        newline = "" if first == 0 or text[first - 1] == "\n" else "\n"
        return f"{text[:first]}{newline}… {', '.join(said)}{note} …\n{text[last:]}"

    def last_lines(self, count: int) -> "MarkedText | None":
        """Only that many lines, or None where there are not more."""
        text = self.text()
        at = len(text) - text.endswith("\n")
        for _ in range(count):
            at = text.rfind("\n", 0, at)
            if at < 0:
                return None
        at += 1
        kept = MarkedText(copied=self.copied)
        kept.add(text[at:])
        kept._marks = [
            Mark(mark.start - at, mark.end - at, mark.dropped, mark.unread)
            for mark in self._marks
            if mark.start >= at
        ]
        return kept

    def _add_mark(self, line: str, dropped: int, unread: int) -> None:
        if self._pieces and not self._pieces[-1].endswith("\n"):
            self.add("\n")
        start = self.length
        self.add(line)
        self._marks.append(Mark(start, self.length, dropped, unread))


def byte_count(count: int) -> str:
    """A number of bytes for people: 98.6 MB."""
    if count < _THOUSAND:
        return f"{count} byte{'' if count == 1 else 's'}"
    size = float(count)
    units = iter(("kB", "MB", "GB", "TB"))
    unit = ""
    while round(size, 1) >= _THOUSAND and (larger := next(units, "")):
        size, unit = size / _THOUSAND, larger
    return f"{size:,.1f} {unit}"


def _line_end_before(text: str, at: int) -> int:
    """The end of a line shortly before a place, or that place in a long line."""
    newline = text.rfind("\n", at // 2, at)
    return at if newline < 0 else newline + 1


def _line_start_after(text: str, at: int) -> int:
    """The start of a line shortly after a place, or that place in a long line."""
    newline = text.find("\n", max(0, at - 1), at + (len(text) - at) // 4)
    return at if newline < 0 else newline + 1
