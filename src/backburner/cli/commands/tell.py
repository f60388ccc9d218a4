"""`backburner tell`."""

from typing import Annotated

import typer

from backburner.cli.inside_options import InsideHome, InsideSession
from backburner.cli.options import JsonOption
from backburner.cli.taking_part import Place, tell

EXAMPLES = (
    'backburner tell "the first 1,000 are done: 3 failed"',
    'backburner tell "disk is 90% full"',
)


def command(
    text: Annotated[str, typer.Argument(metavar="TEXT", hidden=True)],
    *,
    as_json: JsonOption = False,
    home: InsideHome = None,
    session: InsideSession = None,
) -> int:
    """Inside a task: tell the session something, and go on.

    The session is told TEXT as it is told of the end: `backburner signals` lists it. For what a
    person or a model should act on now; `status` says what the task is doing. In a script that
    is not run as a task it says so and does no harm.
    """
    return tell(Place(home, session, as_json), text)
