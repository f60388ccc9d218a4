"""X2: the engine's worker and a database that restarts, is not there yet, or loses its answers.

The nodes here are real workers; nobody would take them, or what they have, for dead in time.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.model.node import Node, NodeKind
from backburner.model.states import State
from backburner.store.engine import Job
from backburner.store.postgres.engine_worker import Brought, EngineWorker
from backburner.store.postgres.node import open_node
from tests.nodes.workers import WorkerProcess
from tests.postgres_server import Server
from tests.store.conformance.making import queued
from tests.store.postgres.proxy import Cut, Wire
from tests.store.postgres.test_database import run
from tests.waiting import wait_until_async

FOR_EVER = "86400"


async def nothing(*_: object) -> None:
    pass


def engine_worker(
    address: str,
    *,
    appear: Callable[[int], Awaitable[None]] = nothing,
    carry_out: Callable[[Job, Brought | None], Awaitable[None]] = nothing,
    report: Callable[[str], None] = print,
) -> EngineWorker:
    return EngineWorker(
        address,
        routes=["default"],
        concurrency=1,
        heartbeat_s=60,
        appear=appear,
        unheard=nothing,
        carry_out=carry_out,
        report=report,
    )


async def test_x2_one_that_begins_while_the_database_is_away_begins_when_it_is_back(
    own_server: Server,
) -> None:
    address = own_server.create()
    brought: asyncio.Queue[Job] = asyncio.Queue()
    said: list[str] = []

    async def carry_out(job: Job, fetched: Brought | None) -> None:
        assert fetched is not None
        assert (fetched.task.id, fetched.task.attempt) == (job.task, job.attempt)
        await brought.put(job)

    await (await open_node(address, "nd_1")).close()
    own_server.stop(signal.SIGQUIT)
    worker = engine_worker(address, carry_out=carry_out, report=said.append)
    running = asyncio.create_task(worker.run())
    try:
        await wait_until_async(lambda: "waits for the database" in "".join(said))
        own_server.start()
        store = await open_node(address, "nd_1")
        task = await queued(store)
        async with asyncio.timeout(25):  # the pool alone would wait for thirty, and then for ever
            assert await brought.get() == Job(task.id, 1)
        await store.close()
    finally:
        running.cancel()
        await asyncio.wait([running])


async def test_x2_a_crash_of_the_database_takes_no_number_of_a_worker_back(
    own_server: Server,
) -> None:
    """It would give the same one to the next, and the two would live and die as one."""
    address = own_server.create()
    numbers: asyncio.Queue[int] = asyncio.Queue()
    given: set[int] = set()

    async def appear(number: int) -> None:
        if numbers.empty():  # nothing that others write has brought it to disk
            await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
            await asyncio.to_thread(own_server.start)
        await numbers.put(number)

    for _ in range(5):
        running = asyncio.create_task(engine_worker(address, appear=appear).run())
        try:
            number = await numbers.get()
            known = await asyncio.to_thread(run, address, "SELECT id FROM procrastinate_workers")
            assert (number,) in known  # beside others: to have left need not be on disk
            assert number not in given
            given.add(number)
        finally:
            running.cancel()
            await asyncio.wait([running])


async def test_x2_two_nodes_of_one_number_both_ask_for_another(address: str) -> None:
    """A server that followed the first one, and takes its place, may have lost the last ones."""
    first, second = await open_node(address, "nd_1"), await open_node(address, "nd_2")
    for number in (1, 2):
        run(address, "SELECT procrastinate_register_worker_v1()")
        await second.put_node(Node("nd_2", NodeKind.WORKER, "here", 1), number)
        assert (await first.is_worker(1), await second.is_worker(number)) == (number == 2, True)
        await first.put_node(Node("nd_1", NodeKind.WORKER, "here", 1), 1)
        both = (await first.is_worker(1), await second.is_worker(number))
        assert both == (number == 2, number == 2)
    assert not await first.is_worker(3)
    await first.close()
    await second.close()


@pytest.fixture
async def wire(address: str) -> AsyncIterator[Wire]:
    """Cut where a job is fetched."""
    await (await open_node(address, "nd_1")).close()  # makes the tables
    async with Wire(address, at=b"procrastinate_fetch_job") as made:
        yield made


async def test_x2_what_was_fetched_by_an_answer_that_nobody_heard_is_given_back_at_once(
    home: Path,
    new_home: Callable[[], Path],
    address: str,
    wire: Wire,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", FOR_EVER)
    starting = asyncio.to_thread(WorkerProcess, wire.address, new_home(), "--dead-after", FOR_EVER)
    worker = await starting
    try:
        async with Backburner.open(address) as bb:
            wire.cut = Cut.AFTER
            task = await bb.session("chat").run("true")
            await task.wait(timeout=30)
            assert (wire.cuts, task.state) == (1, State.SUCCEEDED), worker.said()
    finally:
        await asyncio.to_thread(worker.leave)
