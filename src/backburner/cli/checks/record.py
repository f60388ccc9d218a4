"""The record as a whole: its shape, who may go on with it, and whether it is whole."""

from collections.abc import Iterator

from backburner.cli.checks.finding import Finding, Level
from backburner.model.errors import BackburnerError
from backburner.model.home import Home

_SHOWN = 5
_MIGRATE = "backburner db migrate brings it up to date"


def examine_record(home: Home) -> Iterator[Finding]:
    """What `db check` says."""
    if home.shared:
        yield from _of_database(home)
    else:
        yield from _of_folder(home)


def _of_folder(home: Home) -> Iterator[Finding]:
    from backburner.store.sqlite import checkup

    number, newest = checkup.format_of(home.database), checkup.newest_format()
    shape = shape_finding(number, number, newest)
    yield shape
    if shape.level is Level.FAIL:
        return
    wrong = checkup.problems(home.database)
    yield Finding("file", Level.FAIL if wrong else Level.OK, "; ".join(wrong) or "whole")


def _of_database(home: Home) -> Iterator[Finding]:
    from backburner.runtime.home import check_database_installed

    check_database_installed()
    from backburner.store.postgres.checkup import checkup, newest_format

    try:
        with checkup(home.address) as look:
            shape = shape_finding(look.format.number, look.format.oldest, newest_format())
            yield shape
            if shape.level is Level.FAIL:
                return
            unwritable = look.server().why_unwritable
            if unwritable is not None:
                why, remedy = unwritable
                yield Finding("database", Level.FAIL, f"one {why}", remedy)
            found = look.breaches()
    except BackburnerError as error:
        yield Finding("database", Level.FAIL, error.message, error.remedy)
        return
    yield _counted("jobs", found.jobs_without_tasks, "in the engine have no task that wants them")
    yield _counted("tasks", found.tasks_without_jobs, "wait for the engine, which has no job")
    yield _counted("running", found.running_nowhere, "run, and no machine has them")
    yield _counted("events", found.events_missing, "lack some of their events")
    yield _counted("ends", found.ends_not_told_once, "have not one event of their end")
    yield _beside_the_tables(found.missing)
    yield Finding("record", Level.OK, f"{found.tasks:,} tasks were looked at")


def _counted(check: str, count: int, wrong: str) -> Finding:
    if not count:
        return Finding(check, Level.OK, "as they should be")
    return Finding(
        check,
        Level.FAIL,
        f"{count:,} {wrong}",
        "keep a copy of the database (pg_dump), and report it",
        "this must never be true: a promise is broken",
    )


def _beside_the_tables(missing: list[str]) -> Finding:
    """Indexes, constraints, policies, rights."""
    if not missing:
        return Finding("shape", Level.OK, "has its indexes, constraints, policies and rights")
    from backburner.store.postgres.shape import is_right

    shown = ", ".join(missing[:_SHOWN]) + (", …" if len(missing) > _SHOWN else "")
    return Finding(
        "shape",
        Level.FAIL,
        f"lacks {len(missing):,} things: {shown}",
        "backburner db migrate grants rights again"
        if all(map(is_right, missing))
        else "make them anew, as in a new record, or restore a back-up that has them",
        "a restore that leaves something out makes a record that looks whole",
    )


def shape_finding(number: int, oldest: int, newest: int) -> Finding:
    """The shape that it has, beside the newest that this program knows."""
    if not number:
        return Finding("format", Level.FAIL, "there is no record yet", _MIGRATE)
    if oldest > newest:
        return Finding(
            "format",
            Level.FAIL,
            f"{number}, which needs programs of format {oldest}; this one knows {newest}",
            "upgrade Backburner on this machine",
        )
    others = f"programs from format {oldest} on may use it"
    if number > newest:
        return Finding(
            "format",
            Level.WARN,
            f"{number}, newer than this program's {newest}; {others}",
            "upgrade Backburner on this machine",
            "the next format may leave this program behind",
        )
    if number < newest:
        return Finding("format", Level.FAIL, f"{number}; the newest is {newest}", _MIGRATE)
    return Finding("format", Level.OK, f"{number}, the newest; {others}")
