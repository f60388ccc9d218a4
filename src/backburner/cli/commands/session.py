"""`backburner session`: what the session wishes to be told."""

from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, say
from backburner.cli.options import HomeOption, JsonOption, SessionOption, signal_kinds
from backburner.cli.place import act, place
from backburner.model.channels import QUIET
from backburner.model.errors import UsageError

if TYPE_CHECKING:
    from backburner.app import Backburner, Session

EXAMPLES = (
    "backburner session",
    "backburner session --quiet",
    "backburner session --only failed,input_required",
    "backburner session --everything",
    "backburner session --session chat-42 --end",
)


def command(
    *,
    quiet: Annotated[bool, typer.Option("--quiet", help="Tell it nothing.")] = False,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="KINDS",
            help="Tell it these: completed, failed, canceled, input_required, ready, match, "
            "silent, message; with commas between them.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="Tell it everything, as at the beginning.")
    ] = False,
    end: Annotated[
        bool,
        typer.Option(
            "--end", help="It was deleted: drop what it would be told, stop its tools and agents."
        ),
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="With --end: let those go on.")] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Show or set what the session wishes to be told.

    It concerns its inbox and its channels, from now on. What it does not wish to be told is
    recorded all the same: `backburner signals` lists it as dropped. `run --notify` is heeded
    all the same. A session that has ended (--end) is back when something is started in it.
    """
    if sum((quiet, only is not None, everything, end)) > 1:
        raise UsageError(
            "--quiet, --only, --everything and --end do not go together", remedy="use one of them"
        )
    if keep and not end:
        raise UsageError("--keep goes with --end", remedy="add --end")
    chosen = signal_kinds((only or "").split(","), "--only") if only is not None else QUIET
    at = place(home, session)

    async def work(_: "Backburner", session: "Session") -> int:
        if quiet or only is not None:
            await session.wish(chosen)
        elif everything:
            await session.wish(None)
        elif end:
            await session.end(keep=keep)
        wished = await session.wished()
        ended = await session.ended()
        kinds = None if wished is None else sorted(kind.value for kind in wished)
        if as_json:
            say.document({"session": session.name, "told": kinds, "ended": ended})
        elif ended:
            say.data(f"{session.name} has ended: it is told nothing until something starts in it")
        else:
            shown = "everything" if kinds is None else ", ".join(kinds) or "nothing"
            say.data(f"{session.name} is told: {shown}")
        return exits.DONE

    return act(at, work)
