"""The options of the commands for scripts inside a task: its environment says which task it is."""

from typing import Annotated

import typer

InsideHome = Annotated[
    str | None,
    typer.Option(
        "--home", metavar="DIR", help="Only in a task of this home. [the task's own, whichever]"
    ),
]
InsideSession = Annotated[
    str | None,
    typer.Option(
        "--session", metavar="NAME", help="Only in a task of this session. [the task's own]"
    ),
]
