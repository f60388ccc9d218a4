"""The two that are compared: Backburner on a shared record, and Procrastinate alone.

Each has a database of the same server, callers in this process, and workers that are processes. A
round finds what the last one left, as in life.
"""

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from backburner import Backburner, Session, Settings
from bench.shared.database import Database, databases
from bench.shared.theirs import Theirs
from bench.shared.workers import AT_ONCE, our_workers, their_workers
from bench.waiting import until

CALLERS = 64
WAIT_S = 0.2
WAITS = ["sleep", str(WAIT_S)]
WORKER, BYSTANDER, CALLER = "worker", "bystander", "caller"
"""As whom the database knows our connections."""
_NAP_S = 0.05
_PLENTY = 1_000_000

Workers = AbstractContextManager[list["subprocess.Popen[bytes]"]]
Start = Callable[[int], Awaitable[object]]
"""Hands over one task; the number is the caller's."""


class Side(Protocol):
    """What a round needs of either."""

    database: Database

    def rest(self) -> int:
        """How many tasks have not ended, as its database says."""
        ...


class Ours:
    """Callers have a session each, because a session may have so many tasks at once."""

    def __init__(self, bb: Backburner, database: Database, folder: Path) -> None:
        self.bb = bb
        self.database = database
        self._folder = folder
        self.sessions: list[Session] = [bb.session(f"caller-{n}") for n in range(CALLERS)]

    def workers(self, count: int, *, at_once: int = AT_ONCE) -> Workers:
        """So many machines."""
        address = self.database.address_of(WORKER)
        return our_workers(address, self._folder, count, at_once=at_once)

    def bystanders(self, count: int) -> Workers:
        """Machines that have the record open and nothing to do."""
        address = self.database.address_of(BYSTANDER)
        return our_workers(address, self._folder, count, queue="elsewhere")

    def rest(self) -> int:
        """See Side."""
        return self.database.ask("SELECT count(*) FROM backburner.task WHERE finished_at IS NULL")

    async def command(self, number: int) -> None:
        """A program that does nothing."""
        await self.sessions[number].run(["true"])

    async def function(self, number: int) -> None:
        """A function that does nothing, in the worker itself."""
        await self.sessions[number].spawn("noop", {})

    async def waiting(self, number: int) -> None:
        """A program that waits."""
        await self.sessions[number].run(WAITS)


class TheirSide:
    """The same work as jobs."""

    def __init__(self, app: Theirs, database: Database, folder: Path) -> None:
        self.app = app
        self.database = database
        self._folder = folder

    def workers(self, count: int, *, at_once: int = AT_ONCE) -> Workers:
        """So many machines."""
        return their_workers(self.database.address, self._folder, count, at_once=at_once)

    def rest(self) -> int:
        """See Side."""
        return self.database.ask(
            "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        )

    async def command(self, _: int) -> None:
        """A program that does nothing."""
        await self.app.command(["true"], os.devnull)

    async def function(self, _: int) -> None:
        """A function that does nothing, in the worker itself."""
        await self.app.noop()

    async def waiting(self, _: int) -> None:
        """A program that waits."""
        await self.app.command(WAITS, os.devnull)


@contextlib.asynccontextmanager
async def both(folder: Path) -> AsyncGenerator[tuple[Ours, TheirSide]]:
    """With empty records, and nobody at work."""
    os.environ["BACKBURNER_HOME"] = str(folder / "caller")
    settings = Settings(shell_per_session=_PLENTY, tools_per_session=_PLENTY)
    with databases("ours", "theirs") as (ours, theirs):
        app = Theirs(theirs.address)
        async with app.open(), Backburner.open(ours.address_of(CALLER), settings=settings) as bb:
            yield Ours(bb, ours, folder), TheirSide(app, theirs, folder)


async def rate(side: Side, count: int, start: Start) -> float:
    """How many tasks a second: 64 callers hand them over as fast as they are taken, and the clock

    stops when the last has ended.
    """

    async def all_have_ended() -> bool:
        return side.rest() == 0

    began = time.perf_counter()
    numbers = iter(range(count))

    async def caller(number: int) -> None:
        for _ in numbers:
            await start(number)

    async with asyncio.TaskGroup() as group:
        for number in range(CALLERS):
            group.create_task(caller(number))
    await until(all_have_ended, what="the tasks have ended", nap=_NAP_S)
    return count / (time.perf_counter() - began)
