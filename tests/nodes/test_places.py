"""X10, X2: a worker has so many places, and what it has adopted takes them too."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from backburner import Backburner, Session, State, Task
from backburner.store.postgres.admission import RESERVE
from backburner.store.postgres.node import open_node
from tests.nodes.conftest import NewWorker
from tests.nodes.workers import WorkerProcess
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]

_NUMBER = "SELECT coalesce(max(id), 0) FROM backburner.procrastinate_workers"


class Holding:
    """Commands that hold until they are let go, and say when they begin and end."""

    def __init__(self, folder: Path, session: Session) -> None:
        self._folder = folder
        self._session = session
        self._log = folder / "log"
        self._log.touch()
        self.tasks: list[Task] = []

    async def start(self) -> None:
        number = len(self.tasks)
        wait = f"until [ -e {self._folder}/go-{number} ]; do sleep 0.05; done"
        self.tasks.append(
            await self._session.run(f"echo + >>{self._log}; {wait}; echo - >>{self._log}")
        )

    def let_go(self, *numbers: int) -> None:
        for number in numbers:
            (self._folder / f"go-{number}").touch()

    @property
    def said(self) -> list[str]:
        return self._log.read_text().split()

    @property
    def most(self) -> int:
        """How many ran at once."""
        said = self.said
        return max(said[:n].count("+") - said[:n].count("-") for n in range(len(said) + 1))


@pytest.mark.parametrize("how", ["restarted", "forgotten"])
async def test_x10_x2_no_more_runs_at_once_where_a_worker_begins_anew(
    shared: Backburner, new_worker: NewWorker, address: str, tmp_path: Path, how: str
) -> None:
    """After a crash, and where the engine has forgotten it: what runs goes on."""
    worker = new_worker("--concurrency", "2", "--dead-after", "6")
    holding = Holding(tmp_path, shared.session("chat"))
    for _ in range(6):
        await holding.start()
    await wait_until_async(lambda: holding.said == ["+", "+"])
    for _ in range(2):
        await _begin_anew(worker, address, how)
    holding.let_go(0)
    await wait_until_async(lambda: len(holding.said) == 4, message=worker.said)
    assert sorted(holding.said) == ["+", "+", "+", "-"], "one has ended, and one has begun"
    holding.let_go(*range(1, 6))
    for task in holding.tasks:
        await task.wait(60)
        assert (task.state, task.record.attempt) == (State.SUCCEEDED, 1), worker.said()
    assert holding.most == 2


async def _begin_anew(worker: WorkerProcess, address: str, how: str) -> None:
    """And wait until the engine knows it."""
    with psycopg.connect(address, autocommit=True) as connection:

        def number() -> int:
            ((found,),) = connection.execute(_NUMBER.encode()).fetchall()
            return found

        before = number()
        if how == "restarted":
            await asyncio.to_thread(worker.kill)
            await asyncio.to_thread(worker.start)
        else:
            connection.execute(b"DELETE FROM backburner.procrastinate_workers")
        await wait_until_async(lambda: number() > before, message=worker.said)


async def test_x10_what_has_only_left_processes_behind_takes_no_place_after_a_restart(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    worker = new_worker("--concurrency", "1")
    session = shared.session("chat")
    left = await session.run(f"touch {tmp_path}/file; setsid -f tail -f {tmp_path}/file")
    await left.wait(60)
    assert left.record.leftovers
    await asyncio.to_thread(worker.kill)
    await asyncio.to_thread(worker.start)
    task = await session.run("true")
    assert (await task.wait(60)).state is State.SUCCEEDED, worker.said()
    await left.stop(force=True)


async def test_x10_a_machine_that_was_silent_gets_all_its_places_when_it_is_heard_of(
    shared: Backburner, new_worker: NewWorker, address: str, tmp_path: Path
) -> None:
    """Nothing ends meanwhile, and nothing is started, with which others would be let in."""
    worker = new_worker("--concurrency", "16", "--dead-after", "2")
    worker.pause()
    looks = await open_node(address, "nd_looks")

    async def is_silent() -> bool:
        return not any(each.alive for each in await looks.nodes())

    await wait_until_async(is_silent)
    await looks.close()
    holding = Holding(tmp_path, shared.session("chat"))
    for _ in range(RESERVE + 4):
        await holding.start()
    worker.go_on()
    await wait_until_async(lambda: len(holding.said) == RESERVE + 4, message=worker.said)
    holding.let_go(*range(RESERVE + 4))
    for task in holding.tasks:
        assert (await task.wait(60)).state is State.SUCCEEDED, worker.said()
