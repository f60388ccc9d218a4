"""`backburner queue`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, say, terminal
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import act, place
from backburner.cli.table import Cell, Column, Table
from backburner.model.errors import UsageError
from backburner.model.order import WIDTH_MAX

if TYPE_CHECKING:
    from backburner.app import Backburner, Session
    from backburner.model.order import Queue

HELP = """Make and manage queues: lines that tasks wait in.

Of the tasks that were started with `run --queue NAME` only so many run at once, as many as the
queue is wide; the others wait, the highest priority first, then the oldest. Queues belong to the
home, or to the record that many machines share, and serve all its sessions.
"""

EXAMPLES = (
    "backburner queue set build --width 2",
    "backburner run --queue build -- make",
    "backburner queue ls",
    "backburner queue pause build",
    "backburner queue resume build",
    "backburner queue rm build",
)

_LONG = 10

_NameArgument = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]


def set_queue(
    name: _NameArgument,
    *,
    width: Annotated[
        str, typer.Option("--width", metavar="N", help="So many of its tasks run at once.")
    ],
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Make a queue, or change its width.

    Where it becomes narrower, what runs goes on.
    """
    if not (width.isascii() and width.isdigit() and len(width) < _LONG):
        raise UsageError(
            f"--width: {width!r} cannot be a width", remedy=f"give a number from 1 to {WIDTH_MAX}"
        )

    async def work(backburner: "Backburner", _: "Session") -> int:
        return _tell(await backburner.set_queue(name, int(width)), as_json=as_json)

    return act(place(home, session), work)


def list_queues(
    *, as_json: JsonOption = False, home: HomeOption = None, session: SessionOption = None
) -> int:
    """List the queues, with how many tasks run and wait in each."""

    async def work(backburner: "Backburner", _: "Session") -> int:
        queues = await backburner.queues()
        if as_json:
            say.json_list(queue.document() for queue in queues)
        elif queues:
            _print_table(queues)
        else:
            say.message("no queues")
            say.hint("backburner queue set NAME --width 2 makes one")
        return exits.DONE

    return act(place(home, session), work)


def pause(
    name: _NameArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Start nothing more of a queue. What runs goes on."""

    async def work(backburner: "Backburner", _: "Session") -> int:
        return _tell(await backburner.pause_queue(name), as_json=as_json)

    return act(place(home, session), work)


def resume(
    name: _NameArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Go on with a queue that was paused."""

    async def work(backburner: "Backburner", _: "Session") -> int:
        return _tell(await backburner.resume_queue(name), as_json=as_json)

    return act(place(home, session), work)


def remove(
    name: _NameArgument,
    *,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Remove a queue that no task waits or runs in."""

    async def work(backburner: "Backburner", _: "Session") -> int:
        await backburner.remove_queue(name)
        if as_json:
            say.document({"name": name, "removed": True})
        else:
            say.message(f"queue {name} is removed")
        return exits.DONE

    return act(place(home, session), work)


VERBS = {
    "set": set_queue,
    "ls": list_queues,
    "pause": pause,
    "resume": resume,
    "rm": remove,
}


def _tell(queue: "Queue", *, as_json: bool) -> int:
    if as_json:
        say.document(queue.document())
    else:
        paused = ", paused" if queue.paused else ""
        say.message(
            f"queue {queue.name}: width {queue.width}{paused}; "
            f"{queue.running} running, {queue.waiting} waiting"
        )
    return exits.DONE


def _print_table(queues: list["Queue"]) -> None:
    table = Table(
        [
            Column("QUEUE"),
            Column("WIDTH", right=True),
            Column("RUNNING", right=True),
            Column("WAITING", right=True),
            Column("STATE"),
        ],
        width=terminal.width(sys.stdout),
        colours=terminal.shows_colours(sys.stdout),
    )
    rows = [
        [
            Cell(queue.name),
            Cell(str(queue.width)),
            Cell(str(queue.running)),
            Cell(str(queue.waiting)),
            Cell("paused", "yellow") if queue.paused else Cell("open", "green"),
        ]
        for queue in queues
    ]
    for line in table.lines(rows):
        say.data(line)
