"""`ls`: active and recent tasks. Loads nothing that it does not need."""

import sys
from collections.abc import Iterator, Sequence

from backburner.cli import bars, phrases, say, terminal
from backburner.cli.place import Place, place
from backburner.cli.table import Cell, Column, Row, Table
from backburner.model import clock
from backburner.model.errors import BackburnerError, UsageError
from backburner.model.states import State
from backburner.model.task import Task
from backburner.model.values import value
from backburner.runtime.glance import Glance
from backburner.store.protocol import Scope

RECENT = 50
_BAR_COLUMNS = 10


@value
class Listing:
    """What `ls` is asked for."""

    home: str | None = None
    session: str | None = None
    everything: bool = False
    all_sessions: bool = False
    state: str | None = None
    ids_only: bool = False
    watch: bool = False
    as_json: bool = False

    @property
    def states(self) -> tuple[State, ...]:
        """The one that was asked for; none for all."""
        if self.state is None:
            return ()
        try:
            return (State(self.state),)
        except ValueError:
            raise UsageError(
                f"there is no state {self.state!r}", remedy=f"use one of {', '.join(State)}"
            ) from None

    def scope(self, at: Place) -> Scope:
        """Whose tasks."""
        return at.every_session if self.all_sessions else at.scope


def list_tasks(listing: Listing) -> int:
    """Print the tasks; with ``watch``, again and again."""
    if listing.ids_only and (listing.as_json or listing.watch):
        other = "--json" if listing.as_json else "--watch"
        raise UsageError(f"-q and {other} do not go together", remedy="use one of them")
    at = place(listing.home, listing.session)
    if listing.watch:
        from backburner.cli.watching import watch

        return watch(listing, at)
    with Glance(at.home) as glance:
        pages, more = select(glance, listing, at)
        if listing.as_json:
            _print_documents(glance, pages)
        elif listing.ids_only:
            for page in pages:
                for task in page:
                    say.data(task.id)
        else:
            _print_table(listing, at, pages, more=more)
        try:
            glance.see_to_keeper()
        except (BackburnerError, OSError) as error:
            say.message(
                f"the keeper could not be called: {error}"
            )  # the list is right all the same
    return 0


def select(glance: Glance, listing: Listing, at: Place) -> tuple[Iterator[list[Task]], bool]:
    """The tasks that are asked for, in pages, and whether older ones are left out."""
    scope = listing.scope(at)
    if listing.everything:
        return glance.everything(scope, states=listing.states), False
    tasks, more = glance.recent(scope, states=listing.states, limit=RECENT)
    return iter([tasks] if tasks else []), more


def _print_documents(glance: Glance, pages: Iterator[list[Task]]) -> None:
    from backburner.runtime.output import describe

    say.json_list(describe(glance.home, task) for page in pages for task in page)


def _print_table(listing: Listing, at: Place, pages: Iterator[list[Task]], *, more: bool) -> None:
    width = terminal.width(sys.stdout)
    now = clock.now()
    table: Table | None = None
    progress = False
    for page in pages:
        if table is None:
            progress = any(map(bars.shows_progress, page))
            table = task_table(listing, width=width, progress=progress)
        for line in table.lines(task_rows(listing, page, now, progress=progress)):
            say.data(line)
    if table is None:
        say.message(no_tasks(listing, at))
    elif more:
        say.message(f"the newest {RECENT} are shown; -a shows all")


def no_tasks(listing: Listing, at: Place) -> str:
    """A plain sentence for an empty list."""
    which = f"no {listing.state} tasks" if listing.state else "no tasks"
    if not at.home.shared and not at.home.root.exists():
        return f"{which}: the home {at.home.root} does not exist yet"
    return which if listing.all_sessions else f"{which} in session {at.session!r}"


def task_table(listing: Listing, *, width: int | None, progress: bool) -> Table:
    """The table that `task_rows` fills; bars have a column where there are any."""
    columns = [
        Column("ID"),
        *([Column("SESSION", least=8)] if listing.all_sessions else []),
        Column("STATE"),
        Column("AGE", right=True),
        Column("TOOK", right=True),
        *([Column("PROGRESS", least=6)] if progress else []),
        Column("RESULT", least=6),
        Column("TITLE", least=6),
    ]
    return Table(columns, width=width, colours=terminal.shows_colours(sys.stdout))


def task_rows(
    listing: Listing, tasks: Sequence[Task], now: clock.Instant, *, progress: bool
) -> list[Row]:
    """A row for each task."""
    return [
        [
            Cell(task.id),
            *([Cell(task.session, "dim")] if listing.all_sessions else []),
            Cell(task.state.value, phrases.STATE_COLOURS[task.state]),
            Cell(phrases.since(task.created_at, now)),
            Cell(phrases.took(task, now)),
            *([_progress_cell(task)] if progress else []),
            Cell(
                phrases.outcome(task, bar=progress),
                "red" if task.state is State.FAILED else None,
            ),
            Cell(task.title),
        ]
        for task in tasks
    ]


def _progress_cell(task: Task) -> Cell:
    shown = bars.percent_and_bar(task.progress, _BAR_COLUMNS) if bars.shows_progress(task) else ""
    return Cell(shown, phrases.STATE_COLOURS[task.state])
