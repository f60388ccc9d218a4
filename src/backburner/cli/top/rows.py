"""How a task looks in the list of `top`: which columns there are, and what stands in them. Pure."""

from collections.abc import Callable, Sequence

from backburner.cli import bars, phrases
from backburner.cli.textwidth import clean, columns_of, cut
from backburner.model import clock
from backburner.model.states import State
from backburner.model.task import Task
from backburner.model.telling import waiting
from backburner.model.values import value

_SHORTEST_ID = 9
_LONGEST_ID = 19
_GLYPHS = {
    State.QUEUED: "○",
    State.RUNNING: "●",
    State.INPUT_REQUIRED: "?",
    State.SUCCEEDED: "✓",
    State.FAILED: "✗",
    State.CANCELED: "■",
}
_TIME = 7
_BAR = 10
NARROW = 60
_ROOM_FOR_A_LAST_LINE = 40
_SESSION = 12

Piece = tuple[str, str | None]
"""Text and its colour."""


@value
class Columns:
    """The width of each column; 0 where it is not shown."""

    id: int
    session: int
    state: int
    title: int
    time: int
    progress: int
    last: int
    gap: int

    @classmethod
    def fit(cls, width: int, tasks: Sequence[Task], *, sessions: bool) -> "Columns":
        """What fits these tasks best."""
        narrow = width < NARROW
        gap = 1 if narrow else 2
        state = 1 if narrow else 11
        session = _SESSION if sessions and not narrow else 0
        progress = 0
        if any(map(bars.shows_progress, tasks)):
            progress = 5 if narrow else 6 + _BAR
        names = id_columns([task.id for task in tasks])
        fixed = [names, session, state, _TIME, progress]
        room = width - sum(fixed) - gap * sum(1 for each in fixed if each) - gap
        title, last = max(0, room), 0
        if room >= _ROOM_FOR_A_LAST_LINE:
            longest = max((columns_of(clean(task.title)) for task in tasks), default=0)
            title = min(max(longest, 5), room * 2 // 5)
            last = room - title - gap
        return cls(names, session, state, title, _TIME, progress, last, gap)


def id_columns(ids: Sequence[str]) -> int:
    """So many characters of an id tell these apart: enough to type."""
    for length in range(_SHORTEST_ID, _LONGEST_ID):
        if len({each[:length] for each in ids}) == len(ids):
            return length
    return _LONGEST_ID


def heading(columns: Columns) -> list[Piece]:
    """The titles of the columns."""
    state = "STATE" if columns.state > 1 else ""
    return _laid_out(
        columns,
        [
            ("ID", None),
            (state, None),
            ("SESSION", None),
            ("TITLE", None),
            ("TIME", None),
            ("PROGRESS" if columns.progress > _BAR else "", None),
            ("LAST LINE", None),
        ],
    )


def row(columns: Columns, task: Task, last: str, now: clock.Instant) -> list[Piece]:
    """One task; ``last`` is what stands in the last column where nothing else is to be said."""
    colour = phrases.STATE_COLOURS[task.state]
    glyph, word = _GLYPHS[task.state], chip(task)
    never_ran = task.started_at is None
    time = phrases.since(task.created_at, now) if never_ran else phrases.took(task, now)
    if never_ran and task.state.terminal:
        time = ""
    return _laid_out(
        columns,
        [
            (task.id[: columns.id], None),
            (glyph if columns.state == 1 else f"{glyph} {word}", colour),
            (task.session, "dim"),
            (task.title, None),
            (time, "dim" if never_ran else None),
            (_progress(task, columns.progress), colour),
            (last or said_instead(task, now), "dim"),
        ],
    )


def chip(task: Task) -> str:
    """The state in one word, with what a person wants to know beside it."""
    if task.stop is not None and not task.state.terminal:
        return "stopping"
    if task.state is State.INPUT_REQUIRED:
        return "asks"
    if task.state is State.RUNNING:
        return phrases.readiness(task) or task.state.value
    return task.state.value


def said_instead(task: Task, now: clock.Instant) -> str:
    """What there is to say about a task that has written nothing."""
    if task.error is not None:
        return task.error.message
    return waiting(task.wait, now) if task.wait is not None else task.detail or ""


def _progress(task: Task, columns: int) -> str:
    if not bars.shows_progress(task):
        return ""
    return bars.percent_and_bar(task.progress, max(0, columns - 6)).rstrip()


def _laid_out(columns: Columns, pieces: list[Piece]) -> list[Piece]:
    """The pieces in the order of the columns, each padded to its width."""
    name, state, session, title, time, progress, last = pieces
    blank = " " * columns.gap
    laid: list[Piece] = [(" ", None)]
    plan: list[tuple[Piece, int, Callable[[str, int], str]]] = [
        (name, columns.id, _left),
        (state, columns.state, _left),
        (session, columns.session, _left),
        (title, columns.title, _left),
        (time, columns.time, _right),
        (progress, columns.progress, _left),
        (last, columns.last, _left),
    ]
    for (text, colour), width, align in plan:
        if width:
            laid += [(align(cut(clean(text), width), width), colour), (blank, None)]
    return laid


def _left(text: str, width: int) -> str:
    return text + " " * (width - columns_of(text))


def _right(text: str, width: int) -> str:
    return " " * (width - columns_of(text)) + text
