"""Tables for a terminal: aligned, cut to its width, coloured where that is wanted. Pure.

Our own, because the library for it takes longer to load than `backburner ls` may last.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from backburner.cli.terminal import paint
from backburner.cli.textwidth import clean, columns_of, cut
from backburner.model.values import value

_GAP = "  "


@value
class Cell:
    """What stands in one place, and its colour."""

    text: str
    colour: str | None = None


@value
class Column:
    """One column and how it gives way when the terminal is narrow."""

    title: str
    right: bool = False
    """Numbers are aligned at the right."""
    least: int | None = None
    """It may be cut down to this many columns; None means never, so that it can be copied."""


Row = Sequence[Cell | str]


class Table:
    """Lays rows out. Give them in pages if there are many: each page is as wide as it needs."""

    def __init__(
        self, columns: Sequence[Column], *, width: int | None = None, colours: bool = False
    ) -> None:
        self._columns = columns
        self._width = width
        self._colours = colours
        self._headed = False

    def lines(self, rows: Sequence[Row]) -> Iterator[str]:
        """The rows as lines; the very first line is the heading, unless no column has a title."""
        body = [[_cell(value) for value in row] for row in rows]
        if not self._headed:
            self._headed = True
            if any(column.title for column in self._columns):
                body.insert(0, [Cell(column.title, "dim") for column in self._columns])
        widths = self._widths(body)
        for row in body:
            yield self._line(row, widths)

    def _widths(self, body: list[list[Cell]]) -> list[int]:
        natural = [
            max((columns_of(row[at].text) for row in body), default=0)
            for at in range(len(self._columns))
        ]
        if self._width is None:
            return natural
        widths = list(natural)
        too_much = sum(widths) + len(_GAP) * (len(widths) - 1) - self._width
        # The widest gives way first: cutting a long title costs less than cutting a short word.
        while too_much > 0:
            room, at = max(
                (widths[at] - column.least if column.least is not None else 0, at)
                for at, column in enumerate(self._columns)
            )
            if room <= 0:
                break
            widths[at] -= 1
            too_much -= 1
        return widths

    def _line(self, row: list[Cell], widths: list[int]) -> str:
        parts: list[str] = []
        used = 0
        for at, (cell, column, width) in enumerate(zip(row, self._columns, widths, strict=True)):
            if self._width is not None and used + width > self._width and at:
                break  # a terminal this narrow shows the first columns
            used += width + len(_GAP)
            text = cut(cell.text, width)
            shown = paint(text, cell.colour) if self._colours else text
            blanks = " " * (width - columns_of(text))
            parts.append(blanks + shown if column.right else shown + blanks)
        return _GAP.join(parts).rstrip()


def _cell(value: Cell | str) -> Cell:
    cell = Cell(value) if isinstance(value, str) else value
    return replace(cell, text=clean(cell.text))
