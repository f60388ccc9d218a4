"""Schedules and their firings as a person sees them."""

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime

from backburner.cli import phrases, terminal
from backburner.cli.table import Cell, Column, Row, Table
from backburner.model import clock
from backburner.model.clock import SECOND, Instant, format_duration
from backburner.model.schedule import Firing, Schedule, ScheduleState

_COLOURS = {
    ScheduleState.ACTIVE: "cyan",
    ScheduleState.PAUSED: "yellow",
    ScheduleState.DONE: "green",
    ScheduleState.CANCELED: "dim",
}


def table(schedules: Sequence[Schedule], *, sessions: bool) -> Iterator[str]:
    """One line for each."""
    now = clock.now()
    columns = [
        Column("SCHEDULE"),
        *([Column("SESSION", least=8)] if sessions else []),
        Column("STATE"),
        Column("WHEN"),
        Column("NEXT"),
        Column("FIRED", right=True),
        Column("TITLE", least=12),
    ]
    rows: list[Row] = [
        [
            Cell(each.id),
            *([Cell(each.session)] if sessions else []),
            Cell(each.state.value, _COLOURS[each.state]),
            Cell(_when(each)),
            Cell("" if each.due_at is None else until(each.due_at, now)),
            Cell(str(each.fired)),
            Cell(each.title),
        ]
        for each in schedules
    ]
    yield from _laid_out(columns, rows)


def portrait(schedule: Schedule, firings: Sequence[Firing]) -> Iterator[str]:
    """Everything about one."""
    now = clock.now()
    state = schedule.state.value
    if terminal.shows_colours(sys.stdout):
        state = terminal.paint(state, _COLOURS[schedule.state])
    yield f"{schedule.id}  {state}"
    facts = [
        ("title", schedule.title),
        ("when", _when(schedule)),
        ("next", "" if schedule.due_at is None else _both(schedule.due_at, now)),
        ("detail", schedule.detail or ""),
        ("missed", schedule.missed.value),
        ("overlap", schedule.overlap.value),
        ("jitter", format_duration(schedule.jitter_s) if schedule.jitter_s else ""),
        ("created", f"{_moment(schedule.created_at)} ({_ago(schedule.created_at, now)})"),
        ("fired", str(schedule.fired)),
    ]
    rows: list[Row] = [[Cell(name, "dim"), Cell(value)] for name, value in facts if value]
    yield from _indented(_laid_out([Column(""), Column("", least=20)], rows, margin=2))
    if firings:
        yield ""
        heading = "firings"
        yield terminal.paint(heading, "bold") if terminal.shows_colours(sys.stdout) else heading
        lines: list[Row] = [
            [
                Cell(_moment(each.nominal_at)),
                Cell("skipped", "yellow") if each.task is None else Cell(each.task),
                Cell(each.reason or ""),
            ]
            for each in firings
        ]
        columns = [Column(""), Column(""), Column("", least=20)]
        yield from _indented(_laid_out(columns, lines, margin=2))


def until(instant: Instant, now: Instant) -> str:
    """``in 4m``, or that it is time."""
    return f"in {format_duration((instant - now) / SECOND)}" if instant > now else "now"


def _ago(instant: Instant, now: Instant) -> str:
    return f"{phrases.since(instant, now)} ago"


def _both(instant: Instant, now: Instant) -> str:
    return f"{_moment(instant)} ({until(instant, now)})"


def _when(schedule: Schedule) -> str:
    if schedule.at is not None:
        return f"once, {_moment(schedule.at)}"
    return f"{schedule.cron} {schedule.zone}"


def _moment(instant: Instant) -> str:
    local = datetime.fromtimestamp(instant / SECOND).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S}"


def _laid_out(columns: Sequence[Column], rows: Sequence[Row], *, margin: int = 0) -> Iterator[str]:
    width = terminal.width(sys.stdout)
    room = None if width is None else width - margin
    laid = Table(columns, width=room, colours=terminal.shows_colours(sys.stdout))
    yield from laid.lines(rows)


def _indented(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}"
