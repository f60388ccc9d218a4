"""The list of tasks: draws the lines that are seen, and keeps the chosen task chosen.

Rows come and go; the chosen task stays chosen, and where the list was scrolled it stands still.
"""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from backburner.cli.top.rows import Columns, Piece, heading, row
from backburner.model import clock
from backburner.model.task import Task

PLAIN = Style()
CHOSEN = Style(reverse=True, bold=True)
CHOSEN_ELSEWHERE = Style(bold=True, underline=True)
STYLES = {
    None: PLAIN,
    "dim": Style(dim=True),
    "bold": Style(bold=True),
    **{
        colour: Style(color=colour)
        for colour in ("red", "green", "yellow", "blue", "magenta", "cyan")
    },
}


def strip_of(pieces: list[Piece], width: int, over: Style = PLAIN) -> Strip:
    """Pieces of text as a line of the screen."""
    segments = [
        Segment(text, over if over is CHOSEN else STYLES[colour] + over) for text, colour in pieces
    ]
    return Strip(segments).adjust_cell_length(width, over)


class Heading(Widget):
    """The titles of the columns."""

    def __init__(self) -> None:
        super().__init__()
        self._columns: Columns | None = None

    def show(self, columns: Columns | None) -> None:
        """For these columns."""
        if columns != self._columns:
            self._columns = columns
            self.refresh()

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - there is one line
        """Textual asks for each line."""
        pieces = heading(self._columns) if self._columns else []
        return strip_of([(text, "dim") for text, _ in pieces], self.size.width)


class TaskList(ScrollView, can_focus=True):
    """The tasks, one a line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f,space", "page(1)", show=False),
        Binding("home,g", "first", show=False),
        Binding("end,G", "last", show=False),
    ]

    class Chosen(Message):
        """Another task was chosen."""

    class Seen(Message):
        """Other tasks, or other columns, are in view."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks: list[Task] = []
        self._lasts: dict[str, str] = {}
        self._at = 0
        self._sessions = False
        self._now = clock.now()
        self.columns: Columns | None = None
        """As wide as what is shown needs them."""

    @property
    def chosen(self) -> Task | None:
        """The task that keys act on."""
        return self._tasks[self._at] if self._tasks else None

    @property
    def seen(self) -> list[Task]:
        """The tasks that are on the screen."""
        top = self.scroll_offset.y
        return self._tasks[top : top + max(1, self.size.height)]

    def show(self, tasks: list[Task], *, sessions: bool) -> None:
        """These from now on."""
        before, position = self.chosen, self.scroll_offset.y
        was_at, old = self._at, self._tasks
        self._tasks = tasks
        self._now = clock.now()
        places = {task.id: place for place, task in enumerate(tasks)}
        if before is not None:
            # Where it is gone, its neighbour: the next older one, else the last.
            survivors = (places[each.id] for each in old[was_at:] if each.id in places)
            self._at = next(survivors, max(0, len(tasks) - 1))
        self.virtual_size = Size(self.size.width, len(tasks))
        if position > 0 and old:
            anchor = next((each.id for each in old[position:] if each.id in places), None)
            if anchor is not None:
                seen_at = next(n for n, each in enumerate(old) if each.id == anchor)
                self._scroll(places[anchor] - (seen_at - position))
        else:
            self._keep_in_view()
        self._sessions = sessions
        self._fit()
        self.refresh()
        after = self.chosen
        if (before and before.id) != (after and after.id):
            self.post_message(self.Chosen())

    def tell(self, lasts: dict[str, str]) -> None:
        """What stands in the last column."""
        if lasts != self._lasts:
            self._lasts = lasts
            self.refresh()

    def tick(self) -> None:
        """Time has passed."""
        self._now = clock.now()
        self.refresh()

    def choose(self, place: int) -> None:
        """Another task."""
        place = max(0, min(place, len(self._tasks) - 1))
        if self._tasks and place != self._at:
            self._at = place
            self._keep_in_view()
            self.refresh()
            self.post_message(self.Chosen())

    def choose_task(self, task_id: str) -> None:
        """This one, if it is there."""
        places = (place for place, task in enumerate(self._tasks) if task.id == task_id)
        self.choose(next(places, self._at))

    def render_line(self, y: int) -> Strip:
        """Textual asks for each line."""
        width, place = self.size.width, self.scroll_offset.y + y
        if self.columns is None or place >= len(self._tasks):
            return Strip.blank(width)
        task = self._tasks[place]
        pieces = row(self.columns, task, self._lasts.get(task.id, ""), self._now)
        over = PLAIN
        if place == self._at:
            over = CHOSEN if self.has_focus else CHOSEN_ELSEWHERE
        return strip_of(pieces, width, over)

    def action_move(self, by: int) -> None:
        """Up or down."""
        self.choose(self._at + by)

    def action_page(self, direction: int) -> None:
        """A screen up or down."""
        self.choose(self._at + direction * max(1, self.size.height - 1))

    def action_first(self) -> None:
        """The newest."""
        self.choose(0)

    def action_last(self) -> None:
        """The oldest."""
        self.choose(len(self._tasks) - 1)

    def on_click(self, event: events.Click) -> None:
        """As with a mouse anywhere."""
        self.choose(self.scroll_offset.y + event.y)

    def on_resize(self) -> None:
        """Show what fits."""
        self.virtual_size = Size(self.size.width, len(self._tasks))
        self._fit()
        self._keep_in_view()
        self.post_message(self.Seen())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """However it came: keys, a wheel, the bar."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.post_message(self.Seen())

    def on_focus(self) -> None:
        """The chosen line shows where the keys go."""
        self.refresh()

    def on_blur(self) -> None:
        """The same."""
        self.refresh()

    def _fit(self) -> None:
        if self.size.width == 0:
            return  # hidden: it will be told its size when it is not
        fitting = Columns.fit(self.size.width - 1, self._tasks, sessions=self._sessions)
        if fitting != self.columns:
            self.columns = fitting
            self.post_message(self.Seen())

    def _keep_in_view(self) -> None:
        top, height = self.scroll_offset.y, max(1, self.size.height)
        if self._at < top:
            self._scroll(self._at)
        elif self._at >= top + height:
            self._scroll(self._at - height + 1)

    def _scroll(self, to: int) -> None:
        self.scroll_to(y=to, animate=False, force=True)
