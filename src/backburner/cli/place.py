"""Where a command acts: a home, and a session in it."""

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from backburner.cli import say
from backburner.cli.guard import details_belong_to
from backburner.model.home import Home
from backburner.model.limits import DEFAULT_OWNER, DEFAULT_SESSION
from backburner.model.values import value
from backburner.runtime.home import home_of, owner_here
from backburner.store.protocol import Scope

if TYPE_CHECKING:
    from backburner.app import Backburner, Session


@value
class Place:
    """The home and the session that the options and the environment name."""

    home: Home
    session: str
    owner: str = DEFAULT_OWNER
    """Whose tasks: those of the command line, or of whom BACKBURNER_OWNER names."""

    @property
    def scope(self) -> Scope:
        """What exists for this caller."""
        return Scope(self.owner, self.session)

    @property
    def every_session(self) -> Scope:
        """The same for a caller who asked for all sessions."""
        return Scope(self.owner)


def place(home: str | None, session: str | None) -> Place:
    """From the options of a command."""
    there = home_of(home)
    details_belong_to(there.root)
    return Place(there, session_named(session), owner_here())


def session_named(session: str | None) -> str:
    """The session that the option or the environment names."""
    if session is None:
        session = os.environ.get("BACKBURNER_SESSION") or DEFAULT_SESSION
    if not session:
        from backburner.model.errors import UsageError

        raise UsageError("a session needs a name", remedy="give one to --session, or leave it out")
    if not session.isascii():
        from backburner.model.session import check_name

        check_name(session)
    return session


def place_in_folder(home: str | None, session: str | None, what: str) -> Place:
    """The same for what only a home folder has."""
    at = place(home, session)
    if at.home.shared:
        from backburner.model.errors import UsageError

        raise UsageError(
            f"{what}, and this record is in a database",
            remedy="give a folder to --home; what many machines share is carried out by workers",
        )
    return at


def tell_outage(reason: str | None) -> None:
    """The record is away, or back."""
    say.message("the record is back" if reason is None else f"{reason}; waits for it")


def act(
    at: Place,
    work: "Callable[[Backburner, Session], Awaitable[int]]",
    *,
    outage: "Callable[[str | None], None]" = tell_outage,
) -> int:
    """Open the home, do the work there, close it. ``outage`` is told of a record that is away."""
    import asyncio

    from backburner.app import Backburner

    async def main() -> int:
        async with Backburner.open(at.home.where) as backburner:
            backburner.store.on_outage(outage)
            return await work(backburner, backburner.session(at.session, owner=at.owner))

    return asyncio.run(main())
