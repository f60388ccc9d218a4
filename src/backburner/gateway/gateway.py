"""A gateway: one platform, one home, and what is between them, for as long as it runs."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

from backburner.gateway.cards import EDIT_EVERY_S, Cards
from backburner.gateway.commands import COMMANDS
from backburner.gateway.delivery import Delivery
from backburner.gateway.desk import Desk, Rights
from backburner.gateway.hearing import Hearing
from backburner.gateway.journal import Journal
from backburner.gateway.lock import alone
from backburner.gateway.memory import Memory
from backburner.gateway.people import People
from backburner.gateway.platform import Platform
from backburner.gateway.posting import PEOPLE_READ, Lines, Pace
from backburner.gateway.talking import Agents, Talking
from backburner.model.values import value
from backburner.runtime.sole import sole
from backburner.work.tools.own_folder import as_name

if TYPE_CHECKING:
    from backburner.app import Backburner


@value
class Setup:
    """What whoever starts a gateway chooses."""

    rights: Rights
    agent: str | None = None
    """A command line that answers prompts; None for the built-in agent."""
    zone: str = "UTC"
    """Whose clocks /schedule means; a name that `zone_of` knows."""
    pace: Pace = PEOPLE_READ
    edit_every_s: float = EDIT_EVERY_S
    line: str = ""
    """Tells gateways of the same platform apart, where there may be several: a terminal each."""


async def serve(
    backburner: "Backburner",
    platform: Platform,
    people: People,
    setup: Setup,
    *,
    listening: Callable[[Desk], None] = lambda _: None,
) -> None:
    """Until the platform has nothing more to tell, or it is cancelled.

    Conflict where another gateway of this platform has the home; `BadCredentials`.
    """
    name = f"{platform.name}-{as_name(setup.line)}" if setup.line else platform.name
    folder = f"{backburner.home.gateway}/{name}"
    for path in (backburner.home.gateway, folder):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    remedy = "stop that one first" if not setup.line else "give this one another --session"
    with alone(folder, f"a gateway to {platform.name} for this home", remedy=remedy):
        async with sole(backburner.home, f"the gateway {name}"):
            journal = Journal(f"{folder}/journal")
            try:
                desk = _desk(backburner, platform, setup, journal)
                async with _at_work(desk, people, name) as hearing:
                    listening(desk)
                    await platform.listen(hearing.hear, COMMANDS.menu())
            finally:
                journal.close()


def _desk(backburner: "Backburner", platform: Platform, setup: Setup, journal: Journal) -> Desk:
    memory = Memory(f"{backburner.home.gateway}/memory")
    lines = Lines(platform, journal, setup.pace)
    return Desk(
        platform=platform.name,
        backburner=backburner,
        journal=journal,
        lines=lines,
        limits=platform.limits,
        cards=Cards(backburner, journal, lines, setup.edit_every_s),
        memory=memory,
        talking=Talking(backburner, memory, Agents(backburner, setup.agent, setup.rights)),
        commands=COMMANDS,
        rights=setup.rights,
        zone=setup.zone,
    )


@contextlib.asynccontextmanager
async def _at_work(desk: Desk, people: People, name: str) -> AsyncGenerator[Hearing]:
    """What goes on beside listening."""
    hearing, delivery = Hearing(desk, people), Delivery(desk, people)
    following: list[asyncio.Task[None]] = []
    try:
        desk.cards.resume()
        hearing.take_up()
        for scope in people.scopes:
            await delivery.try_again(scope)
        consumer = f"gateway {name}"
        following += [
            delivery.follow(each, f"{consumer} {each.owner} {each.session or ''}".rstrip())
            for each in people.scopes
        ]
        yield hearing
    finally:
        await hearing.close()
        for each in following:
            each.cancel()
        if following:
            await asyncio.wait(following)
        await desk.cards.close()
