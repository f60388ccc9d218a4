"""`top`: a full-screen view of tasks and their output.

The view reads through the public handles and calls them; it decides nothing. Nothing is asked
for again and again: the record and the kernel tell when there is news. textual is loaded only here.
"""

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from backburner.cli import exits
from backburner.cli.place import Place, act
from backburner.model.errors import UsageError

if TYPE_CHECKING:
    from backburner.app import Backburner, Session


def show_top(at: Place, *, all_sessions: bool, active_only: bool, search: str) -> int:
    """Show the view until the person leaves it."""
    try:
        from backburner.cli.top.hangup import told_of_hangup
        from backburner.cli.top.roster import Choice
        from backburner.cli.top.view import Top
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"textual", "rich"}:
            raise
        raise UsageError(
            "top needs textual, which is not installed",
            remedy='pip install "backburner[top]"; without it, `backburner ls --watch` works',
        ) from None

    async def work(backburner: "Backburner", session: "Session") -> int:
        choice = Choice(
            session=None if all_sessions else session.name, active_only=active_only, search=search
        )
        view = Top(backburner, session, choice)
        loop = asyncio.get_running_loop()
        endings = (signal.SIGTERM, signal.SIGHUP)
        for ending in endings:  # else the terminal would be left as the view needs it
            loop.add_signal_handler(ending, view.exit, exits.TERMINATED)
        try:
            with told_of_hangup(sys.stdin.fileno(), lambda: view.exit(exits.TERMINATED)):
                status = await view.run_async()
        finally:
            for ending in endings:
                loop.remove_signal_handler(ending)
        if view.failure is not None:
            raise view.failure
        return exits.DONE if status is None else status

    return act(at, work, outage=lambda _: None)  # the view says so itself
