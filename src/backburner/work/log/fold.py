"""Folding terminal noise out of text: colours, redrawn progress bars, repeated lines.

Pure: text in, text out. It promises that no control character but newline and tab is left, that
nothing which a terminal would still show is lost, and time linear in the text, whatever is in it.
"""

import re
from itertools import islice, pairwise

MIN_REPEATS = 3
"""Two equal lines are shown as they are: the marker would be as long."""

WIDTH = 160
"""Columns that a cursor can be moved to. Only what was written may be longer; without a limit a
few bytes of input could ask for megabytes of blanks."""

HEIGHT = 200
"""Rows that a cursor can be moved up: more than any terminal on which a bar was drawn."""

# Quantifiers are possessive or followed by what they cannot match, and the body of a string stops
# at the next control character: so no character is looked at more than twice. Each pattern opens
# with a set of characters, on which the engine skips ten times as fast as on alternatives.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BODY = r"[^\x00-\x08\x0a-\x1f\x7f-\x9f]*+(?:\x07|\x1b\\|\x9c)"
_MOVE = r"[0-9;]*+[A-GJK]"
_LOOSE = r"\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f"


def _undrawn(*, moves: str) -> re.Pattern[str]:
    """Everything that draws nothing; `moves` are the CSI sequences to leave alone."""
    return re.compile(
        rf"[\x1b\x9b{_LOOSE}](?:(?<=\x1b)(?:"
        r"\x1b*(?=\x1b)"  # a run of escapes, but for the last
        rf"|\[(?!{moves})[0-?]*+[ -/]*+[@-~]?"  # CSI
        rf"|[\]PX^_]{_BODY}"  # OSC, DCS, SOS, PM, APC
        r"|(?!\[)[ -/]*+[0-~]?"  # character sets, two-letter sequences, a lone escape
        rf")|(?<=\x9b)[0-?]*+[ -/]*+[@-~]?|(?<=[\x90\x98\x9d-\x9f]){_BODY}"  # the same in 8 bits
        rf"|(?<![\x1b\x9b])[{_LOOSE}]*+)"
    )


_UNDRAWN = _undrawn(moves=_MOVE)
_SEQUENCE = _undrawn(moves=r"(?!)")
_REDRAW = re.compile(r"[\r\x08\x1b](?:(?<=\r)\r*+|(?<=\x08)\x08*+|(?<=\x1b)\[([0-9;]*+)([A-GJK]))")

_BLANK = re.compile(r"[\s\x08]+")
# Marks that change the direction of text, with which a title can be made to read as another.
_DIRECTION = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def fold(text: str, *, repeats: bool = True) -> str:
    """The text as a terminal would show it in the end, with repeated lines told once.

    A line without its newline at the very end is kept apart: it may be half of a line.
    """
    if _CONTROL.search(text):
        text = _draw(text)
    return fold_repeats(text) if repeats else text


def fold_repeats(text: str) -> str:
    """Tell a run of three or more equal lines once, with a line that counts the others."""
    lines = text.split("\n")
    unfinished = lines.pop()
    triples = zip(lines, islice(lines, 1, None), islice(lines, 2, None), strict=False)
    if not any(first == second == third for first, second, third in triples):
        return text
    folded: list[str] = []
    starts = [0, *(at for at, (a, b) in enumerate(pairwise(lines), 1) if a != b), len(lines)]
    for start, end in pairwise(starts):
        if end - start < MIN_REPEATS:
            folded += lines[start:end]
        else:
            more = f"{end - start - 1:,} more {'times' if lines[start] else 'blank lines'}"
            folded += [lines[start], f"  ⋮ {more}"]
    return "\n".join([*folded, unfinished])


def is_plain(text: str) -> bool:
    """Whether there is nothing to fold but repeats."""
    return not _CONTROL.search(text)


def strip_controls(text: str) -> str:
    """One line that is safe to print in a terminal: no sequences, controls or line breaks."""
    text = _BLANK.sub(" ", _SEQUENCE.sub("", text))
    return _DIRECTION.sub("", text).strip()


def _draw(text: str) -> str:
    text = text.replace("\r\n", "\n")
    if _CONTROL.search(text):
        text = _UNDRAWN.sub("", text)
    if not _REDRAW.search(text):
        return text
    screen = _Screen()
    at = 0
    for match in _REDRAW.finditer(text):
        if match.start() > at:
            screen.write(text[at : match.start()])
        at = match.end()
        if match[0][0] == "\r":
            screen.column = 0
        elif match[0][0] == "\b":
            screen.column = max(0, screen.column - len(match[0]))
        else:
            screen.move(match[1], match[2])
    screen.write(text[at:])
    return screen.text()


class _Screen:
    """An endless roll of rows with a cursor.

    A row is text until it is written to a second time; then it becomes an array of UTF-32, where
    an overwrite costs what it writes and not the length of the row.
    """

    def __init__(self) -> None:
        self.rows: list[str | bytearray] = [""]
        self.row = 0
        self.column = 0

    def write(self, text: str) -> None:
        """Text with newlines, from the cursor on, over what is there."""
        if "\n" not in text:
            self._put(text)
            return
        first, *middle, last = text.split("\n")
        self._put(first)
        below = len(self.rows) - 1 - self.row  # rows that are drawn over, not added
        for line in middle[:below]:
            self._next_row()
            self._put(line)
        self._next_row()
        if len(middle) > below:
            self.rows[-1:] = middle[below:]
            self.rows.append("")
            self.row = len(self.rows) - 1
        self._put(last)

    def move(self, parameters: str, letter: str) -> None:
        """Carry out a cursor movement or an erasure."""
        first = parameters.partition(";")[0]
        number = int(first[:6] or "0")  # no screen is larger, and int() of a long text is slow
        count = max(1, number)
        if letter == "K":
            self._erase_in_row(number)
        elif letter == "J":
            if number == 0:  # clearing the whole screen would lose what was printed before
                self._cut_row()
                del self.rows[self.row + 1 :]
        elif letter == "C":
            self.column = max(self.column, min(self.column + count, WIDTH))
        elif letter == "D":
            self.column = max(0, self.column - count)
        elif letter == "G":
            self.column = min(count - 1, max(WIDTH, self.column))
        else:
            self.column = 0 if letter in "EF" else min(self.column, WIDTH)
            step = count if letter in "BE" else -count
            highest = max(0, len(self.rows) - HEIGHT)
            lowest = len(self.rows) - 1
            self.row = max(min(self.row + step, lowest), min(self.row, highest))

    def text(self) -> str:
        """All rows. One that was drawn over loses its blanks at the end: they erased something."""
        return "\n".join(
            row if isinstance(row, str) else _text_of(row).rstrip(" ") for row in self.rows
        )

    def _next_row(self) -> None:
        self.row += 1
        self.column = 0
        if self.row == len(self.rows):
            self.rows.append("")

    def _put(self, text: str) -> None:
        if not text:
            return
        row = self.rows[self.row]
        if not row and not self.column:
            self.rows[self.row] = text
        else:
            cells = self._cells()
            if (missing := self.column - len(cells) // 4) > 0:
                cells += _cells_of(" " * missing)
            cells[4 * self.column : 4 * (self.column + len(text))] = _cells_of(text)
        self.column += len(text)

    def _erase_in_row(self, mode: int) -> None:
        if mode == 0:
            self._cut_row()
        elif mode == 2:  # noqa: PLR2004 - the terminal's number for the whole row
            self.rows[self.row] = ""
            self.column = min(self.column, WIDTH)

    def _cut_row(self) -> None:
        if not self.column:
            self.rows[self.row] = ""
        elif self.column < self._length():
            del self._cells()[4 * self.column :]

    def _length(self) -> int:
        row = self.rows[self.row]
        return len(row) if isinstance(row, str) else len(row) // 4

    def _cells(self) -> bytearray:
        row = self.rows[self.row]
        if isinstance(row, str):
            row = self.rows[self.row] = bytearray(_cells_of(row))
        return row


def _cells_of(text: str) -> bytes:
    return text.encode("utf-32-le", "surrogatepass")


def _text_of(cells: bytearray) -> str:
    return cells.decode("utf-32-le", "surrogatepass")
