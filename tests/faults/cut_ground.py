"""A shared ground whose machines are also cut off, stay away, and are lost for good (X2, X10, E11).

Each worker is in a network namespace of its own, whose wire is cut without a word: no side hears
that the other is gone. A proxy would not do that, because the kernel goes on to answer for it.
The database and the applications are at the other end of all wires.
"""

import random
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from backburner.model.home import Home
from backburner.model.node import name_beside
from tests import leftovers
from tests.faults.grounds import QUEUES, WORKERS, SharedGround
from tests.nodes.networks import Machine, Network
from tests.nodes.workers import WorkerProcess
from tests.postgres_server import Server
from tests.waiting import wait_until

SILENT_S = 5
"""Short, so that machines are taken for dead in nearly every round. A busy one may be, too: then
what it had is orphaned or taken up again, and the promises are the same."""

_SHORT = (0.1, 0.7)
_LONG = (1.2, 2.2)
"""How long somebody is away, by that time."""

_SOON = "tcp_user_timeout=2000&connect_timeout=2"
_IMPATIENT = "options=-c%20idle_in_transaction_session_timeout%3D3s"
"""Who is cut off notices within seconds. Whoever is cut off in the middle of a write keeps the
others for less than they wait for a write, also when that happens twice."""

_OF_WORKERS = """
    SELECT id FROM backburner.task
    WHERE id = ANY(%s) AND node = ANY(%s)
"""
_ON_MACHINES = """
    SELECT id FROM backburner.task WHERE node = ANY(%s) AND (finished_at IS NULL OR leftovers > 0)
"""


@dataclass
class Place:
    """A machine, its worker, and until when one of them is away."""

    machine: Machine
    worker: WorkerProcess
    returning: threading.Timer | None = None

    @property
    def is_away(self) -> bool:
        return self.returning is not None and self.returning.is_alive()

    def come_back_in(self, seconds: float, how: Callable[[], None]) -> None:
        """Beside whatever else is destroyed meanwhile."""
        self.returning = threading.Timer(seconds, how)
        self.returning.start()

    def wait(self) -> None:
        """Until it is back."""
        if self.returning is not None:
            self.returning.join()


class CutGround(SharedGround):
    """Four machines at the ends of wires, with tools."""

    mix = "tools"
    deaths = True

    def __init__(self, server: Server, network: Network, new_home: Callable[[], Path]) -> None:
        self._network = network
        self._new_home = new_home
        self._places: list[Place] = []
        self._lost: list[str] = []
        self._harmed: set[str] = set()
        super().__init__(server, [new_home() for _ in range(WORKERS)])
        self.victims = {"wire": 35, "wires": 10, "absent": 15, "machine": 8}
        self.victims |= {"worker": 15, "workers": 5, "database": 8}

    def _new_worker(self, home: Path) -> WorkerProcess:
        machine = self._network.machine()
        address = f"{self._database}?{_SOON}&{_IMPATIENT}"
        options = ("--dead-after", str(SILENT_S), "--tools", "tests.faults.tools", *QUEUES)
        worker = WorkerProcess(address, home, *options, enter=machine.enter)
        self._places.append(Place(machine, worker))
        return worker

    # Destruction

    def kill(self, victim: str, choice: float) -> None:
        """Cut a wire, or several; kill a worker that comes back late; lose a machine for good.

        Who is away already stays so.
        """
        dice = random.Random(choice)
        order = dice.sample(range(WORKERS), WORKERS)
        present = [self._places[number] for number in order if not self._places[number].is_away]
        if victim == "wire":
            self._cut(present[:1], dice)
        elif victim == "wires":
            self._cut(present[: dice.randint(2, WORKERS)], dice)
        elif victim == "absent":
            for place in present[:1]:
                self._harm(place.worker)
                place.worker.kill()
                place.come_back_in(_time_away(dice), place.worker.begin)
        elif victim == "machine":
            for place in present[:1]:
                self._lose(place)
        else:
            # Who is absent is dead already, and who is cut off is killed another time.
            workers = [place.worker for place in present]
            self._kill(victim, {"worker": workers[:1], "database": []}.get(victim, workers))

    def _cut(self, places: list[Place], dice: random.Random) -> None:
        for place in places:
            self._harm(place.worker)
            place.machine.cut_off()
            place.come_back_in(_time_away(dice), place.machine.join)

    def _lose(self, place: Place) -> None:
        """It and all that ran on it; another machine takes its place."""
        self._harm(place.worker)
        home = place.worker.home
        place.worker.kill()
        wait_until(lambda: not leftovers.end_once(home), message=f"{home} does not die")
        self._lost.append(_name(place.worker))
        number = self._workers.index(place.worker)
        self._workers[number] = self._new_worker(self._new_home())
        self._places[number] = self._places.pop()

    def _kill(self, victim: str, workers: Sequence[WorkerProcess]) -> None:
        for worker in workers:
            self._harm(worker)
        super()._kill(victim, workers)

    def _harm(self, worker: WorkerProcess) -> None:
        self._harmed.add(_name(worker))

    # Peace

    def reunite(self) -> None:
        """All wires are whole, and every worker takes on tasks."""
        for place in self._places:
            place.wait()
        for worker in self._workers:
            worker.until_ready()

    def on_lost_machines(self) -> set[str]:
        with psycopg.connect(self._database, autocommit=True) as connection:
            rows = connection.execute(_ON_MACHINES, [self._lost]).fetchall()
        return {task for (task,) in rows}

    def unharmed(self, tasks: Collection[str]) -> set[str]:
        """Of an application nobody here knows whether it was killed."""
        well = {_name(place.worker) for place in self._places} - self._harmed
        self._harmed.clear()
        with psycopg.connect(self._database, autocommit=True) as connection:
            nodes = [*well, *map(name_beside, well)]
            rows = connection.execute(_OF_WORKERS, [list(tasks), nodes]).fetchall()
        return {task for (task,) in rows}

    def close(self) -> None:
        for place in self._places:
            if place.returning is not None:
                place.returning.cancel()
                place.wait()
            place.machine.join()
        super().close()


def _name(worker: WorkerProcess) -> str:
    return Path(Home(worker.home).node).read_text().split()[0]


def _time_away(dice: random.Random) -> float:
    return SILENT_S * dice.uniform(*dice.choice((_SHORT, _LONG)))
