"""The output of one task: wrapped, bounded, and still while somebody reads it.

It follows what is written only as long as its end is in view. Text is shown as text: no markup,
no escape codes.
"""

from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from backburner.cli.top.outputs import Line, News

LINES = 5000
"""So many are kept; older ones are in the log."""
_SLACK = 500
"""Dropped at a time, because dropping moves everything."""

_PLAIN = Style()
_ERROR = Style(color="red")
_FAINT = Style(dim=True)


class OutputPane(ScrollView, can_focus=True):
    """Lines of output."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_by(-1)", show=False),
        Binding("down,j", "scroll_by(1)", show=False),
        Binding("pageup,ctrl+b", "page_by(-1)", show=False),
        Binding("pagedown,ctrl+f,space", "page_by(1)", show=False),
        Binding("home,g", "beginning", show=False),
        Binding("end,G", "newest", show=False),
    ]

    class Moved(Message):
        """Its end came into view, or went out of it."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[Line] = []
        self._rows: list[tuple[str, Style]] = []
        self._firsts: list[int] = []
        """For each line, the row that it begins in."""
        self._unfinished: Line | None = None
        self._unfinished_rows = 0
        self._width = 0
        self._height = 0
        self._empty = ""
        self._followed = True

    @property
    def following(self) -> bool:
        """Whether the end is in view."""
        return self.scroll_offset.y >= self._furthest

    @property
    def lines(self) -> list[str]:
        """What there is to read, unwrapped."""
        last = [self._unfinished] if self._unfinished else []
        return [line.text for line in (*self._lines, *last)]

    def say_when_empty(self, text: str) -> None:
        """What stands here while there is no output."""
        if text != self._empty:
            self._empty = text
            self.refresh()

    def add(self, news: News) -> None:
        """What was written."""
        if not (news.anew or news.lines or news.unfinished != self._unfinished):
            return
        following = news.anew or self.following
        if news.anew:
            self._lines.clear()
            self._clear_rows()
        self._take_back_unfinished()
        for line in news.lines:
            self._append(line)
        self._unfinished = news.unfinished
        if news.unfinished is not None:
            rows = self._wrapped(news.unfinished)
            self._unfinished_rows = len(rows)
            self._rows += rows
        dropped = self._drop_oldest()
        self._resize()
        if following:
            self._go_to(self._furthest)
        elif dropped:
            self._go_to(self.scroll_offset.y - dropped)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Textual asks for each line."""
        width, place = self.size.width, self.scroll_offset.y + y
        if not self._rows and y == 0:
            return Strip([Segment(f" {self._empty}", _FAINT)]).adjust_cell_length(width)
        if place >= len(self._rows):
            return Strip.blank(width)
        text, style = self._rows[place]
        return Strip([Segment(f" {text}", style)]).adjust_cell_length(width)

    def on_resize(self) -> None:
        """Wrap anew; the line at the top stays there."""
        height, self._height = self._height, self.size.height
        following = self.scroll_offset.y >= max(0, len(self._rows) - height)
        if self._room == self._width:
            self._resize()
            # Its lower edge stands still, so that what is read there does too.
            self._go_to(self.scroll_offset.y + height - self._height)
        else:
            top = self._line_at(self.scroll_offset.y)
            lines, unfinished = self._lines, self._unfinished
            self._lines = []
            self._clear_rows()
            for line in lines:
                self._append(line)
            if unfinished is not None:
                rows = self._wrapped(unfinished)
                self._unfinished, self._unfinished_rows = unfinished, len(rows)
                self._rows += rows
            self._resize()
            self._go_to(self._firsts[top] if top < len(self._firsts) else self._furthest)
        if following:
            self._go_to(self._furthest)
        self.refresh()

    def action_scroll_by(self, rows: int) -> None:
        """Up or down."""
        self._go_to(self.scroll_offset.y + rows)

    def action_page_by(self, direction: int) -> None:
        """A screen up or down."""
        self._go_to(self.scroll_offset.y + direction * max(1, self.size.height - 1))

    def action_beginning(self) -> None:
        """The oldest line that is kept."""
        self._go_to(0)

    def action_newest(self) -> None:
        """The end; it follows from there."""
        self._go_to(self._furthest)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """However it came: keys, a wheel, the bar."""
        super().watch_scroll_y(old_value, new_value)
        if self.following != self._followed:
            self._followed = self.following
            self.post_message(self.Moved())

    @property
    def _furthest(self) -> int:
        return max(0, len(self._rows) - self.size.height)

    @property
    def _room(self) -> int:
        return max(1, self.size.width - 3)  # a margin on each side, and the scroll bar

    def _clear_rows(self) -> None:
        self._rows, self._firsts = [], []
        self._unfinished, self._unfinished_rows = None, 0
        self._width = self._room

    def _append(self, line: Line) -> None:
        self._firsts.append(len(self._rows))
        self._lines.append(line)
        self._rows += self._wrapped(line)

    def _take_back_unfinished(self) -> None:
        if self._unfinished_rows:
            del self._rows[-self._unfinished_rows :]
        self._unfinished, self._unfinished_rows = None, 0

    def _wrapped(self, line: Line) -> list[tuple[str, Style]]:
        style = _ERROR if line.error else _PLAIN
        text, room = line.text, self._width or self._room
        if len(text) <= room and (text.isascii() or cell_len(text) <= room):
            return [(text, style)]
        if text.isascii():
            return [(text[at : at + room], style) for at in range(0, len(text), room)]
        return [(part, style) for part in chop_cells(text, room)]

    def _drop_oldest(self) -> int:
        """Answers how many rows are gone."""
        if len(self._lines) <= LINES + _SLACK:
            return 0
        lines = len(self._lines) - LINES
        rows = self._firsts[lines]
        del self._lines[:lines]
        del self._rows[:rows]
        self._firsts = [first - rows for first in self._firsts[lines:]]
        return rows

    def _line_at(self, row: int) -> int:
        import bisect

        return max(0, bisect.bisect_right(self._firsts, row) - 1)

    def _resize(self) -> None:
        self.virtual_size = Size(self.size.width, len(self._rows))

    def _go_to(self, row: int) -> None:
        self.scroll_to(y=max(0, min(row, self._furthest)), animate=False, force=True)
