"""`backburner prune`."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backburner.cli import exits, say, terminal
from backburner.cli.options import HomeOption, JsonOption, SessionOption, seconds, size
from backburner.cli.place import act, place
from backburner.cli.table import Column, Table
from backburner.model import clock
from backburner.model.errors import UsageError

if TYPE_CHECKING:
    from backburner.app import Backburner, Session
    from backburner.runtime.retention import Doomed, Rule
    from backburner.store.protocol import Scope

EXAMPLES = (
    "backburner prune",
    "backburner prune --older-than 7d",
    "backburner prune --max-size 1G --all-sessions --dry-run",
    "backburner prune --older-than 0 --all-sessions",
)

_PAGE = 500


def command(
    *,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="TIME", help="Ended at least this long ago. [30d]"),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max-size",
            metavar="SIZE",
            help="The oldest, until the folders of the tasks take no more than this on the disk: "
            "500M, 2G.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would go, and change nothing.")
    ] = False,
    all_sessions: Annotated[
        bool, typer.Option("--all-sessions", help="The tasks of every session.")
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Forget tasks that ended long ago, or that take too much room.

    Their output, events and signals go with them. What runs, has left processes behind, or is
    waited for by another task stays. Of what goes for room, tasks whose end is still pending in
    the inbox go last. The keeper does the same by itself once an hour, for all sessions: after 30
    days (BACKBURNER_RETENTION_S) and above BACKBURNER_MAX_SIZE bytes, which is no limit unless set.
    In a record that many machines share, the workers do.
    """
    age = None if older_than is None else seconds(older_than, "--older-than")
    most = None if max_size is None else size(max_size, "--max-size")
    at = place(home, session)
    if most is not None and at.home.shared:
        raise UsageError(
            "the folders of these tasks are on other machines",
            remedy="prune by age: backburner prune --older-than 7d",
        )

    async def work(backburner: "Backburner", _: "Session") -> int:
        from backburner.runtime.retention import Rule

        now = backburner.store.now()
        rule = Rule.of(backburner.settings, age, most, now=now, here=not at.home.shared)
        scope = at.every_session if all_sessions else at.scope
        if dry_run:
            await _list(backburner, rule, scope, as_json=as_json, all_sessions=all_sessions)
        else:
            await _prune(backburner, rule, scope, as_json=as_json)
        return exits.DONE

    return act(at, work)


async def _prune(backburner: "Backburner", rule: "Rule", scope: "Scope", *, as_json: bool) -> None:
    from backburner.runtime.retention import prune, size_of_all

    pruned = await prune(backburner.store, backburner.home, rule, scope)
    if as_json:
        say.document({"pruned": pruned.count, "freed_bytes": pruned.size})
    else:
        say.data(f"{_tasks(pruned.count)} removed{_freed(pruned.size)}")
        if rule.max_size is not None:
            left = await size_of_all(backburner.store, backburner.home, scope)
            if left > rule.max_size:
                from backburner.work.log.marks import byte_count

                say.message(f"{byte_count(left)} are left, of tasks that may not go yet")


async def _list(
    backburner: "Backburner", rule: "Rule", scope: "Scope", *, as_json: bool, all_sessions: bool
) -> None:
    from backburner.runtime.retention import choose

    found = [doomed async for doomed in choose(backburner.store, backburner.home, rule, scope)]
    size = sum(doomed.size for doomed in found)
    if as_json:
        say.document({"would_prune": [_document(each) for each in found], "freed_bytes": size})
        return
    columns = [
        Column("ID"),
        *([Column("SESSION", least=8)] if all_sessions else []),
        Column("ENDED", right=True),
        Column("SIZE", right=True),
        Column("SIGNAL"),
        Column("TITLE", least=6),
    ]
    colours = terminal.shows_colours(sys.stdout)
    table = Table(columns, width=terminal.width(sys.stdout), colours=colours)
    for first in range(0, len(found), _PAGE):
        rows = [_row(each, all_sessions=all_sessions) for each in found[first : first + _PAGE]]
        for line in table.lines(rows):
            say.data(line)
    say.message(f"{_tasks(len(found))} would be removed{_freed(size)}")


def _row(doomed: "Doomed", *, all_sessions: bool) -> list[str]:
    from backburner.cli import phrases
    from backburner.work.log.marks import byte_count

    task = doomed.task
    return [
        task.id,
        *([task.session] if all_sessions else []),
        f"{phrases.since(task.finished_at or 0, clock.now())} ago",
        byte_count(doomed.size),
        task.signal_state.value if task.signal_state else "",
        task.title,
    ]


def _document(doomed: "Doomed") -> dict[str, Any]:
    task = doomed.task
    return {
        "id": task.id,
        "session": task.session,
        "title": task.title,
        "finished_at": clock.rfc3339(task.finished_at or 0),
        "bytes": doomed.size,
        "signal": task.signal_state.value if task.signal_state else None,
    }


def _tasks(count: int) -> str:
    return f"{count} {'task' if count == 1 else 'tasks'}"


def _freed(size: int) -> str:
    from backburner.work.log.marks import byte_count

    return f", {byte_count(size)} freed" if size else ""
