"""`backburner signals --hook`: run by a coding agent, at each prompt, before the model sees it.

So it is quick, prints nothing where there is nothing to tell, and makes no home where none is.
"""

import os
from typing import TYPE_CHECKING

from backburner.cli import exits, say
from backburner.cli.place import act, place

if TYPE_CHECKING:
    from backburner.app import Backburner, Session

_STDIN = 0


def hooked(name: str, home: str | None, session: str | None) -> int:
    """Tell a model what is new; see `mcp.hooks`."""
    from backburner.mcp.hooks import occasion, read_input, tell

    occasion(name, {})  # before anything is read
    at = occasion(name, read_input(_STDIN))
    there = place(home, session)
    there_is_one = there.home.shared or os.path.exists(there.home.database)
    if not at.takes or not there_is_one:
        return exits.DONE
    named = session is not None or bool(os.environ.get("BACKBURNER_SESSION"))
    sessions = [there.session] if named else at.sessions()

    async def work(backburner: "Backburner", _: "Session") -> int:
        await tell(backburner, sessions, at, say.at_once, owner=there.owner)
        return exits.DONE

    return act(there, work)
