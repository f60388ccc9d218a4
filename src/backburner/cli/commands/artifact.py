"""`backburner artifact`."""

from typing import Annotated

import typer

from backburner.cli.inside_options import InsideHome, InsideSession
from backburner.cli.options import JsonOption
from backburner.cli.taking_part import Place, artifact

EXAMPLES = (
    "backburner artifact dist/app.tar.gz",
    "backburner artifact --name coverage.html htmlcov/index.html",
)


def command(
    path: Annotated[str, typer.Argument(metavar="PATH", hidden=True)],
    *,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Keep it under this name.")
    ] = None,
    as_json: JsonOption = False,
    home: InsideHome = None,
    session: InsideSession = None,
) -> int:
    """Inside a task: keep a copy of a file with it.

    PATH is a plain file of up to 100 MiB, 1 GiB for all of a task: BACKBURNER_ARTIFACT_LIMIT and
    BACKBURNER_ARTIFACTS_LIMIT, in bytes, where the task is started. `show` lists what was added,
    and it goes with the task. A name that is taken gets a number.
    """
    return artifact(Place(home, session, as_json), path, name)
