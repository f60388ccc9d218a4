"""`backburner progress`."""

from typing import Annotated

import typer

from backburner.cli.inside_options import InsideHome, InsideSession
from backburner.cli.options import JsonOption
from backburner.cli.taking_part import Place, progress

EXAMPLES = (
    "backburner progress 3 10",
    "backburner progress 3 10 --unit files --label main.c",
    "backburner progress 1200 --unit rows",
)


def command(
    current: Annotated[str, typer.Argument(metavar="CURRENT", hidden=True)],
    total: Annotated[str | None, typer.Argument(metavar="TOTAL", hidden=True)] = None,
    *,
    unit: Annotated[
        str | None, typer.Option("--unit", metavar="UNIT", help="What is counted, such as files.")
    ] = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="TEXT", help="What is worked on now.")
    ] = None,
    as_json: JsonOption = False,
    home: InsideHome = None,
    session: InsideSession = None,
) -> int:
    """Inside a task: say how far it is.

    CURRENT and TOTAL are numbers; leave TOTAL out where it is not known. Quick enough for a loop:
    of many calls in a moment the last one counts.
    """
    return progress(Place(home, session, as_json), current, total, unit, label)
