"""`backburner status`."""

from typing import Annotated

import typer

from backburner.cli.inside_options import InsideHome, InsideSession
from backburner.cli.options import JsonOption
from backburner.cli.taking_part import Place, status

EXAMPLES = (
    "backburner status compiling",
    'backburner status "waiting for the database"',
)


def command(
    text: Annotated[str, typer.Argument(metavar="TEXT", hidden=True)],
    *,
    as_json: JsonOption = False,
    home: InsideHome = None,
    session: InsideSession = None,
) -> int:
    """Inside a task: say what it is doing.

    `ls` and `show` have TEXT until the next one. Quick enough for a loop, and from any number of
    processes at once. In a script that is not run as a task it says so and does no harm.
    """
    return status(Place(home, session, as_json), text)
