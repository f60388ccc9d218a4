"""`backburner ls`."""

from typing import Annotated

import typer

from backburner.cli.listing import Listing, list_tasks
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.model.states import State

EXAMPLES = (
    "backburner ls",
    "backburner ls -a --state failed",
    "backburner ls --all-sessions --json",
    "backburner stop $(backburner ls -q --state queued)",
)


def command(
    *,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="All tasks, not only active ones and the newest 50.")
    ] = False,
    all_sessions: Annotated[
        bool, typer.Option("--all-sessions", help="The tasks of every session.")
    ] = False,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="STATE", help=f"Only this state: {', '.join(State)}."),
    ] = None,
    ids_only: Annotated[bool, typer.Option("--quiet", "-q", help="Print ids only.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show changes as they happen, until Ctrl-C.")
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """List active and recent tasks, newest first."""
    return list_tasks(
        Listing(
            home=home,
            session=session,
            everything=everything,
            all_sessions=all_sessions,
            state=state,
            ids_only=ids_only,
            watch=watch,
            as_json=as_json,
        )
    )
