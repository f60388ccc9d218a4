"""`backburner result`."""

from typing import Annotated

import typer

from backburner.cli.inside_options import InsideHome, InsideSession
from backburner.cli.options import JsonOption
from backburner.cli.taking_part import Place, result

EXAMPLES = (
    """backburner result '{"passed": 42}'""",
    "jq '.summary' report.json | backburner result -",
)


def command(
    value: Annotated[str, typer.Argument(metavar="JSON", hidden=True)],
    *,
    as_json: JsonOption = False,
    home: InsideHome = None,
    session: InsideSession = None,
) -> int:
    """Inside a task: give its result.

    JSON is any JSON of up to 1 MiB; - reads it from standard input. A later result takes the
    place of an earlier one. It is in the task's JSON and in its result.json.
    """
    return result(Place(home, session, as_json), value)
