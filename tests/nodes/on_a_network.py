"""Machines that are cut off (X2, X10, E11). `test_partitions.py` runs this in a network of its own.

The wire is cut without a word: no side hears that the other is gone. Each worker is in a namespace
of its own; the database and the application are at the other end of all wires.
"""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from backburner import Backburner, Task
from backburner.model.states import ErrorKind, State
from backburner.store.postgres.writers_lock import WRITERS
from tests.conftest import REPOSITORY
from tests.faults.victims import processes_with, unique_seconds
from tests.nodes.networks import HERE, Machine, Network
from tests.nodes.workers import WorkerProcess
from tests.postgres_server import Server
from tests.waiting import pause_async, wait_until_async

DEAD_AFTER_S = 4
IMPATIENT = "?options=-c%20idle_in_transaction_session_timeout%3D3s"
"""Ten seconds where nothing is said."""


@pytest.fixture(scope="module")
def network() -> Network:
    return Network()


@pytest.fixture(scope="module")
def server(network: Network) -> Iterator[Server]:
    made = Server(listen=HERE)
    yield made
    made.close()


@pytest.fixture
def address(server: Server) -> str:
    return server.create()


@pytest.fixture
async def bb(home: Path, address: str) -> AsyncIterator[Backburner]:
    async with Backburner.open(address) as opened:
        yield opened


NewMachine = Callable[..., tuple[Machine, WorkerProcess]]


@pytest.fixture
def new_worker(
    network: Network, address: str, new_home: Callable[[], Path]
) -> Iterator[NewMachine]:
    """A worker on a machine at the end of a wire, which notices soon when that is cut."""
    started: list[tuple[Machine, WorkerProcess]] = []

    def start(*options: str) -> tuple[Machine, WorkerProcess]:
        machine = network.machine()
        soon = f"{address}?tcp_user_timeout=2000&connect_timeout=2"
        options = ("--dead-after", str(DEAD_AFTER_S), *options)
        worker = WorkerProcess(soon, new_home(), *options, enter=machine.enter)
        started.append((machine, worker))
        return started[-1]

    yield start
    for machine, worker in started:
        machine.join()
        worker.leave()


async def test_e11_x2_what_a_machine_has_that_is_cut_off_is_orphaned_and_ended_when_it_is_back(
    bb: Backburner, new_worker: NewMachine
) -> None:
    await bb.set_queue("one", 5)
    (machine, cut), _ = new_worker("--queue", "one"), new_worker("--queue", "two")
    seconds = unique_seconds()
    session = bb.session("chat")
    task = await session.run(f"sleep {seconds} & wait", queue="one")
    waiting = await session.run("true", queue="one")
    await waiting.wait(timeout=60)
    await wait_until_async(lambda: processes_with(seconds))
    machine.cut_off()
    await task.wait(timeout=60)
    assert task.error is not None
    assert task.error.kind is ErrorKind.ORPHANED
    assert processes_with(seconds), "nobody can reach it yet"

    machine.join()
    await wait_until_async(lambda: not processes_with(seconds), timeout=60, message=cut.said)
    again = await session.run("echo back", queue="one")
    await again.wait(timeout=60)
    assert (again.state, (await again.output()).text) == (State.SUCCEEDED, "back\n")
    assert cut.process.poll() is None, cut.said()
    told = Counter(signal.task for signal in await session.told())
    assert told == {task.id: 1, waiting.id: 1, again.id: 1}


async def test_x2_a_short_cut_is_no_death(bb: Backburner, new_worker: NewMachine) -> None:
    """The command goes on, and what it ended with is told when the wire is whole again."""
    patient = ("--dead-after", "60")
    (machine, cut), _ = new_worker(*patient), new_worker("--queue", "nothing", *patient)
    task = await bb.session("chat").run("echo begun; sleep 1; echo done; exit 3")
    await wait_until_async(lambda: _said(task, "begun"))
    machine.cut_off()
    await pause_async(4, because="the worker is to lose its connections meanwhile")
    machine.join()
    await task.wait(timeout=60)
    assert (task.record.exit_code, task.record.attempt) == (3, 1), cut.said()
    assert (await task.output()).text == "begun\ndone\n"


async def test_x2_whoever_is_cut_off_in_the_middle_of_a_write_does_not_keep_the_others(
    bb: Backburner, network: Network, address: str
) -> None:
    """The lock of the writers is given up by the database, not by who holds it."""
    for impatience in ("", IMPATIENT, IMPATIENT):
        machine = network.machine()
        writer = await asyncio.create_subprocess_exec(
            *machine.enter, sys.executable, "-m", "tests.nodes.busy_writer", address + impatience,
            cwd=REPOSITORY, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert writer.stdout is not None
        try:
            for _ in range(20):
                assert await writer.stdout.readline()
            machine.cut_off()
            async with asyncio.timeout(19):
                await bb.session("other").run("true")
        finally:
            writer.kill()
            await writer.wait()


async def test_x10_a_wire_that_drops_and_delays_loses_and_doubles_nothing(
    bb: Backburner,
    new_worker: NewMachine,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    machine, _ = new_worker("--dead-after", "60")
    record_property("made bad by", machine.worsen())
    session = bb.session("chat")
    tasks = [await session.run(f"echo ran >>{tmp_path}/ran-{n}") for n in range(20)]
    for task in tasks:
        await task.wait(timeout=60)
    assert {task.state for task in tasks} == {State.SUCCEEDED}
    assert [(tmp_path / f"ran-{n}").read_text() for n in range(20)] == ["ran\n"] * 20
    assert len(await session.told()) == 20


def test_x2_the_database_lets_go_of_who_is_gone(network: Network, address: str) -> None:
    """Also of one that holds the lock outside of a transaction, and asks nothing."""
    machine = network.machine()
    with subprocess.Popen(
        [*machine.enter, sys.executable, "-m", "tests.nodes.busy_writer", address, "hold"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline()
            machine.cut_off()
            with psycopg.connect(address) as other:
                other.execute("SET statement_timeout = '25s'")
                other.execute(f"SELECT pg_advisory_xact_lock({WRITERS})".encode())
        finally:
            holder.kill()


async def _said(task: Task, text: str) -> bool:
    return text in (await task.output()).text
