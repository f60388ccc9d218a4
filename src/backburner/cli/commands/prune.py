"""`backburner prune`."""

from typing import TYPE_CHECKING, Annotated

import typer

from backburner.cli import exits, say
from backburner.cli.options import HomeOption, JsonOption, SessionOption, seconds
from backburner.cli.place import act, place
from backburner.model import clock

if TYPE_CHECKING:
    from backburner.app import Backburner, Session

EXAMPLES = (
    "backburner prune",
    "backburner prune --older-than 7d",
    "backburner prune --older-than 0 --all-sessions",
)


def command(
    *,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="TIME", help="Ended at least this long ago. [30d]"),
    ] = None,
    all_sessions: Annotated[
        bool, typer.Option("--all-sessions", help="The tasks of every session.")
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Forget tasks that ended long ago.

    Their output, events and signals go with them. The keeper does the same by itself after 30
    days (BACKBURNER_RETENTION_S), for all sessions.
    """
    given = None if older_than is None else seconds(older_than, "--older-than")
    at = place(home, session)

    async def work(backburner: "Backburner", _: "Session") -> int:
        from backburner.runtime.retention import prune

        age = backburner.settings.retention_s if given is None else given
        before = clock.now() - round(age * clock.SECOND)
        scope = at.every_session if all_sessions else at.scope
        count = await prune(backburner.store, backburner.home, before, scope)
        if as_json:
            say.document({"pruned": count})
        else:
            say.data(f"{count} {'task' if count == 1 else 'tasks'} removed")
        return exits.DONE

    return act(at, work)
