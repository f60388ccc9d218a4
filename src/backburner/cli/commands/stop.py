"""`backburner stop`."""

from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, guard, phrases, say
from backburner.cli.options import HomeOption, JsonOption, SessionOption, seconds
from backburner.cli.place import act, place
from backburner.model.errors import (
    SPELLINGS,
    Ambiguous,
    NotAllowed,
    NotFound,
    TimeIsUp,
    UsageError,
)
from backburner.model.limits import DEFAULT_GRACE_S
from backburner.model.states import ACTIVE, ErrorKind, State

if TYPE_CHECKING:
    from backburner.app import Backburner, Session, Task

EXAMPLES = (
    "backburner stop bg_7k2m",
    "backburner stop --grace 30s bg_7k2m bg_x81c",
    "backburner stop --force bg_7k2m",
    "backburner stop --all",
    "backburner stop --ask bg_7k2m0x81c5f3q9d2",
)

_PAGE = 500


def command(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", hidden=True)] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="KILL at once, without asking.")] = False,
    grace: Annotated[
        str | None,
        typer.Option("--grace", metavar="TIME", help="Between TERM and KILL. [5s]"),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every active task of the session.")] = False,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask the other session that ID belongs to, up to 5min.")
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """End tasks and everything that they have started.

    ID is the id of a task, or enough of it. TERM, a grace, KILL. Returns when nothing of them is
    left, and prints each id with the state that it ended in. One that has ended already is left
    as it is. Exits with 1 where a machine is away, so that nobody knows whether its task has ended.
    With --ask, ID may be the whole id of a task of another session: that session is told, and
    answers with `send --question`.
    """
    if every == bool(ids):
        raise UsageError("give ids, or --all", remedy="see: backburner stop --help")
    if ask and every:
        raise UsageError("--ask is for ids", remedy="see: backburner stop --help")
    if force and grace is not None:
        raise UsageError("--force leaves no grace", remedy="give --force or --grace")
    grace_s = None if grace is None else seconds(grace, "--grace")

    async def work(_: "Backburner", session: "Session") -> int:
        import asyncio

        tasks, unknown = await _chosen(session, ids)
        stopped = await asyncio.gather(*(_stop(task, force, grace_s) for task in tasks))
        status = exits.first_not_done(stopped)
        for reference, error in unknown.items():
            if ask and isinstance(error, NotFound):
                task, failed = await _ask(session, reference, force, grace_s)
                tasks += [] if task is None else [task]
            else:
                guard.tell(error)
                failed = SPELLINGS[error.code].exit_status
            status = status or failed
        if as_json:
            documents = [task.document() for task in tasks]
            one = ids is not None and len(ids) == 1
            if documents or not one:
                say.document(documents[0] if one else documents)
        else:
            for task in tasks:
                say.data(f"{task.id} {task.state}")
        if not tasks and status == exits.DONE:
            say.message(f"nothing is running in session {session.name!r}")
        return status

    return act(place(home, session), work)


async def _chosen(
    session: "Session", ids: list[str] | None
) -> tuple[list["Task"], dict[str, NotFound | Ambiguous]]:
    """The tasks, each once, and what could not be found."""
    if not ids:
        return await _active(session), {}
    found: dict[str, Task] = {}
    unknown: dict[str, NotFound | Ambiguous] = {}
    for reference in ids:
        try:
            task = await session.task(reference)
        except (NotFound, Ambiguous) as error:
            unknown[reference] = error
        else:
            found.setdefault(task.id, task)
    return list(found.values()), unknown


async def _ask(
    session: "Session", reference: str, force: bool, grace_s: float | None
) -> tuple["Task | None", int]:
    """Stop one of another session of the owner, which agrees or does not; the status."""
    grace = DEFAULT_GRACE_S if grace_s is None else grace_s
    try:
        task = await session.stop(reference, force=force, grace=grace)
    except (NotFound, NotAllowed, TimeIsUp) as error:
        guard.tell(error)
        return None, SPELLINGS[error.code].exit_status
    say.message(f"{task.record.title} ({task.id}) {phrases.ending(task.record)}")
    return task, exits.FAILED if _is_orphaned(task) else exits.DONE


def _is_orphaned(task: "Task") -> bool:
    """Its machine was lost before it could say what became of it."""
    return task.error is not None and task.error.kind is ErrorKind.ORPHANED


async def _active(session: "Session") -> list["Task"]:
    tasks: list[Task] = []
    before: int | None = None
    while page := await session.tasks(states=ACTIVE, limit=_PAGE, before=before):
        tasks += page
        before = page[-1].record.seq
    return tasks


async def _stop(task: "Task", force: bool, grace_s: float | None) -> int:
    """The status: whether nothing of it is left."""
    before = task.record
    await (task.stop(force=force) if grace_s is None else task.stop(grace=grace_s))
    name = f"{before.title} ({before.id})"
    if before.state.terminal and before.leftovers:
        left = phrases.processes(before.leftovers)
        say.message(f"{name} had ended before; {left} that it left behind ended now")
    elif before.state.terminal:
        say.message(f"{name} was not running: it {phrases.ending(task.record)}")
    elif task.state is State.CANCELED:
        say.message(f"{name} was stopped")
    elif _is_orphaned(task):
        say.message(f"{name} {phrases.ending(task.record)}")
        return exits.FAILED
    else:
        say.message(f"{name} ended by itself first: it {phrases.ending(task.record)}")
    return exits.DONE
