"""`backburner owner`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, say, terminal
from backburner.cli.options import HomeOption, JsonOption, SessionOption, count
from backburner.cli.place import act, place
from backburner.cli.table import Cell, Column, Table
from backburner.model.errors import NotFound, UsageError

if TYPE_CHECKING:
    from backburner.app import Backburner, Session
    from backburner.model.order import OwnerLimit

HELP = """Limit how many tasks of an owner run at once.

What is more waits, and starts as others of that owner end. A limit holds for all sessions and
kinds, and on all machines of a shared record together. Owners are those of tokens and programs; the
command line is `local`, or whom BACKBURNER_OWNER names.
"""

EXAMPLES = (
    "backburner owner set ada --running 4",
    "backburner owner set --others --running 16",
    "backburner owner ls",
    "backburner owner rm ada",
)

_NameArgument = Annotated[str | None, typer.Argument(metavar="NAME", hidden=True)]
_OthersOption = Annotated[
    bool, typer.Option("--others", help="Every owner that has no limit of its own.")
]


def set_limit(
    name: _NameArgument = None,
    *,
    running: Annotated[
        str, typer.Option("--running", metavar="N", help="So many tasks run at once.")
    ],
    others: _OthersOption = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Limit how many tasks of an owner run at once.

    What runs goes on, also where it is more.
    """
    owner, limit = _owner(name, others=others), count(running, "--running", least=1)

    async def work(backburner: "Backburner", _: "Session") -> int:
        await backburner.set_owner_limit(owner, limit)
        (found,) = [each for each in await backburner.owner_limits() if each.owner == owner]
        if as_json:
            say.document(found.document())
        else:
            say.message(
                f"{_shown(found)}: {found.limit} at once; "
                f"{found.running} running, {found.waiting} waiting"
            )
        return exits.DONE

    return act(place(home, session), work)


def list_limits(
    *, as_json: JsonOption = False, home: HomeOption = None, session: SessionOption = None
) -> int:
    """List the limits, with how many tasks of each owner run and wait."""

    async def work(backburner: "Backburner", _: "Session") -> int:
        limits = await backburner.owner_limits()
        if as_json:
            say.json_list(each.document() for each in limits)
        elif limits:
            _print_table(limits)
        else:
            say.message("no owner has a limit")
            say.hint("backburner owner set NAME --running 4 gives one")
        return exits.DONE

    return act(place(home, session), work)


def remove(
    name: _NameArgument = None,
    *,
    others: _OthersOption = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Take the limit of an owner away."""
    owner = _owner(name, others=others)

    async def work(backburner: "Backburner", _: "Session") -> int:
        if all(each.owner != owner for each in await backburner.owner_limits()):
            raise NotFound(
                f"{_whose(owner)} has no limit of its own", remedy="see: backburner owner ls"
            )
        await backburner.set_owner_limit(owner, None)
        if as_json:
            say.document({"owner": owner, "removed": True})
        else:
            say.message(f"{_whose(owner)} has no limit of its own any more")
        return exits.DONE

    return act(place(home, session), work)


VERBS = {"set": set_limit, "ls": list_limits, "rm": remove}


def _owner(name: str | None, *, others: bool) -> str | None:
    if (name is None) != others:
        raise UsageError("whose limit is it?", remedy="give the name of an owner, or --others")
    return name


def _shown(limit: "OwnerLimit") -> str:
    return _whose(limit.owner)


def _whose(owner: str | None) -> str:
    return owner or "every other owner"


def _print_table(limits: list["OwnerLimit"]) -> None:
    table = Table(
        [
            Column("OWNER"),
            Column("LIMIT", right=True),
            Column("RUNNING", right=True),
            Column("WAITING", right=True),
        ],
        width=terminal.width(sys.stdout),
        colours=terminal.shows_colours(sys.stdout),
    )
    rows = [
        [
            Cell(_shown(each)),
            Cell(str(each.limit)),
            Cell(str(each.running)),
            Cell(str(each.waiting)),
        ]
        for each in limits
    ]
    for line in table.lines(rows):
        say.data(line)
