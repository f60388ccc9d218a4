"""Where a campaign is fought: what applications open, who else can be killed, and what must hold.

A home folder with its keeper and guardian; or a record that four workers share, and its database.
"""

import signal
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

import psycopg

from tests.faults.application import QUEUE
from tests.faults.record import is_intact
from tests.faults.victims import guardians_of, keeper_of, kill, kill_all_of_ours
from tests.nodes.workers import WorkerProcess
from tests.postgres_server import Server
from tests.waiting import wait_until

WORKERS = 4
DEAD_AFTER_S = 300
"""Longer than anybody waits here: nothing may depend on a machine being taken for dead, because
each that is killed comes back at once."""

QUEUES = ("--queue", "default", "--queue", QUEUE)
"""What every worker takes on."""

_AS_APPLICATION = "application_name=application"
_OF_APPLICATIONS = """
    SELECT query FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'application'
"""


class Ground(Protocol):
    """One of them."""

    address: str
    """What `Backburner.open` takes."""
    folder: Path
    """For what the applications write down."""
    mix: str
    """What applications start here (`application.MIXES`)."""
    deaths: bool
    """Whether machines are away for so long that they are taken for dead."""
    victims: dict[str, int]
    """Who can be killed here, beside an application, and how often."""

    def kill(self, victim: str, choice: float) -> None:
        """As a crash would; ``choice`` is a random number. Who would be started anew is."""
        ...

    def settle(self) -> None:
        """Wait until whatever somebody had asked for who was killed is done, or never will be."""
        ...

    def reunite(self) -> None:
        """Wait until everybody is back who will be."""
        ...

    def on_lost_machines(self) -> set[str]:
        """Tasks that are on machines which never come back."""
        ...

    def unharmed(self, tasks: Collection[str]) -> set[str]:
        """Which of these were on machines that nobody has harmed since this was asked last."""
        ...

    def check(self) -> None:
        """What must hold of the record when all is over."""
        ...

    def said(self) -> str:
        """What those who carry out the work have said."""
        ...


class HomeGround:
    """One machine."""

    mix = "commands"
    deaths = False

    def __init__(self, home: Path) -> None:
        self.victims = {"keeper": 30, "guardian": 15, "both": 10}
        self.address = str(home)
        self.folder = home.parent
        self._home = home

    def kill(self, victim: str, choice: float) -> None:
        if victim in ("both", "all"):
            kill_all_of_ours(self._home)
        elif victim == "keeper" and (keeper := keeper_of(self._home)):
            kill(keeper)
        elif victim == "guardian":
            kill(*guardians_of(self._home))

    def settle(self) -> None:
        """Who is dead writes nothing here."""

    def reunite(self) -> None:
        """Whoever is needed is started by who needs it."""

    def on_lost_machines(self) -> set[str]:
        return set()

    def unharmed(self, tasks: Collection[str]) -> set[str]:
        return set(tasks)

    def check(self) -> None:
        assert is_intact(self._home)

    def said(self) -> str:
        return (self._home / "keeper.log").read_text()


class SharedGround:
    """Four machines and a database. A machine that is killed comes back, as its supervisor sees to

    it, and goes on with what it had.
    """

    mix = "commands"
    deaths = False

    def __init__(self, server: Server, homes: Sequence[Path]) -> None:
        self.victims = {"worker": 30, "workers": 10, "database": 15}
        self._server = server
        self._database = server.create()
        self.address = f"{self._database}?{_AS_APPLICATION}"
        self.folder = homes[0].parent
        self._workers = [self._new_worker(home) for home in homes]

    def _new_worker(self, home: Path) -> WorkerProcess:
        return WorkerProcess(self._database, home, "--dead-after", str(DEAD_AFTER_S), *QUEUES)

    def kill(self, victim: str, choice: float) -> None:
        one = self._workers[int(choice * len(self._workers))]
        self._kill(victim, {"worker": [one], "database": []}.get(victim, self._workers))

    def _kill(self, victim: str, workers: Sequence[WorkerProcess]) -> None:
        for worker in workers:
            worker.kill()
        if victim in ("database", "all"):
            self._server.stop(signal.SIGQUIT)
        for worker in workers:  # also while there is no database
            worker.begin()
        if victim in ("database", "all"):
            self._server.start()

    def settle(self) -> None:
        """The database carries out what it was asked for, also where nobody waits for it."""
        with psycopg.connect(self._database, autocommit=True) as connection:
            wait_until(
                lambda: connection.execute(_OF_APPLICATIONS).fetchall() == [],
                message="the database serves applications that are dead",
            )

    def reunite(self) -> None:
        """Nobody is away for longer than it takes to start."""

    def on_lost_machines(self) -> set[str]:
        return set()

    def unharmed(self, tasks: Collection[str]) -> set[str]:
        return set(tasks)

    def check(self) -> None:
        """Nobody has ended but by our hand, and the engine has nothing that is over."""
        for worker in self._workers:
            worker.until_ready()
        with psycopg.connect(self._database, autocommit=True) as connection:
            jobs = connection.execute(
                "SELECT args FROM backburner.procrastinate_jobs WHERE status = 'todo'"
            ).fetchall()
            assert jobs == [], "the engine has jobs of which nothing is left"

    def said(self) -> str:
        return "\n".join(f"{worker.home.name}: {worker.said()}" for worker in self._workers)

    def close(self) -> None:
        """What runs has been stopped before."""
        for worker in self._workers:
            worker.leave()
