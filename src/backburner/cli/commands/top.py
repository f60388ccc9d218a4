"""`backburner top`."""

import os
import sys
from typing import Annotated

import typer

from backburner.cli import terminal
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import place
from backburner.model.errors import UsageError

EXAMPLES = (
    "backburner top",
    "backburner top --all-sessions --active",
    "backburner top --search pytest",
)


def command(
    *,
    all_sessions: Annotated[
        bool, typer.Option("--all-sessions", help="The tasks of every session.")
    ] = False,
    active: Annotated[
        bool, typer.Option("--active", help="Only what has not ended; `a` changes it.")
    ] = False,
    search: Annotated[
        str,
        typer.Option(
            "--search", metavar="WORDS", help="Only tasks with this in id, title or command."
        ),
    ] = "",
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Watch tasks and their output on the whole screen.

    Stop them, answer what they ask, run them again: ? lists the keys. Leaving it leaves every job
    alone. Needs the extra `top`.
    """
    if as_json:
        raise UsageError(
            "top is for people", remedy="backburner ls --watch --json prints every change"
        )
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(map(terminal.is_terminal, streams)) or os.environ.get("TERM") == "dumb":
        raise UsageError(
            "top needs a terminal", remedy="backburner ls --watch --json works without one"
        )
    from backburner.cli.top import show_top

    at = place(home, session)
    return show_top(at, all_sessions=all_sessions, active_only=active, search=search.strip())
