"""X2: claims that failed, or that nobody heard of: one machine has each task, and only one."""

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.model import clock
from backburner.model.errors import StoreAway
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.node import Node, NodeKind
from backburner.model.states import State
from backburner.model.task import Place, Task
from backburner.runtime.contact import Contact
from backburner.runtime.dead_nodes import see_to_the_dead
from backburner.runtime.feed import Feed
from backburner.runtime.station import Station
from backburner.runtime.worker import ProcessWorker
from backburner.store.engine import Job, Silence
from backburner.store.postgres.node import NodeStore, open_node
from backburner.work.process.condition import BLANK
from backburner.work.process.identity import boot_id
from tests import postgres_server
from tests.nodes.machine import machine
from tests.store.conformance.making import PLENTY, get, new_task
from tests.store.postgres.test_database import run
from tests.waiting import wait_until_async


@pytest.mark.parametrize("here", [True, False], ids=["same boot", "other boot"])
async def test_x2_what_another_machine_has_begun_since_is_not_adopted(
    tmp_path: Path, here: bool
) -> None:
    address = postgres_server.server().create()
    one, other = await open_node(address, "nd_one"), await open_node(address, "nd_other")
    await one.create(new_task("bg_moved", spec={"command": "x", "log": [1, 1]}), limit=PLENTY)
    await other.take(Job("bg_moved", 1))
    boot = boot_id() if here else "another-boot"
    assert await other.claim("bg_moved", 1, Place(boot, clock.boot_now(), 4711)) is not None
    worker = ProcessWorker(one, Home(tmp_path, address), Settings(), print)
    getattr(worker, "_forsaken").add(("bg_moved", 1))  # noqa: B009 - as after a claim that failed
    for _ in range(2):
        looking = asyncio.create_task(worker.work())
        await asyncio.wait([looking], timeout=0.5)
        looking.cancel()
        await asyncio.wait([looking])
    task = await get(one, "bg_moved")
    assert (task.state, task.attempt) == (State.RUNNING, 1)
    await worker.close()
    await one.close()
    await other.close()


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "waiting"])
async def test_x2_what_is_with_another_machine_by_now_is_not_ended_by_one_that_cannot_start_it(
    tmp_path: Path, begun: bool
) -> None:
    """It was handed on while a look at the record was under way, which had seen it here."""
    address = postgres_server.server().create()
    one, other = await open_node(address, "nd_one"), await open_node(address, "nd_other")
    job = Job("bg_moved", 1)
    await one.create(new_task(job.task, spec={"command": "x", "log": [1, 1]}), limit=PLENTY)
    seen_here = await one.take(job)
    assert seen_here is not None
    assert await one.give_back(job)
    assert await other.take(job) is not None
    if begun:
        assert (
            await other.claim(job.task, job.attempt, Place(boot_id(), clock.boot_now(), 4711))
            is not None
        )
    worker = ProcessWorker(one, Home(tmp_path, address), Settings(), print)
    worker.start(seen_here)  # there is nothing to start it with
    await wait_until_async(lambda: not getattr(worker, "_busy"))  # noqa: B009 - nobody else asks
    task = await get(one, job.task)
    assert (task.state, task.attempt) == (State.RUNNING if begun else State.QUEUED, 1)
    await worker.close()
    await one.close()
    await other.close()


@pytest.mark.parametrize("began", [True, False], ids=["begun", "taken"])
async def test_e11_what_one_look_gives_to_a_machine_that_lives_no_other_look_takes_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, began: bool
) -> None:
    """Two programs have seen it with a dead machine, and the second comes to it a moment later."""
    address = postgres_server.server().create()
    lost, lives, slow = [await open_node(address, f"nd_{number}") for number in range(3)]
    job = Job("bg_given", 1)
    await lost.create(new_task(job.task, spec={"command": "x", "log": [1, 1]}), limit=PLENTY)
    run(address, "SELECT procrastinate_fetch_job_v2(NULL, NULL)")
    assert await lost.take(job) is not None
    seen = await slow.silent(0, math.inf)
    assert [(each.job, each.node) for each in seen] == [(job, "nd_0")]

    async def saw(*_: float) -> list[Silence]:
        return seen

    for look in (lost, slow):
        monkeypatch.setattr(look, "silent", saw)
    home = Home(tmp_path, address)
    await see_to_the_dead(lost, home, AtOnce(0, lambda: 0), (), print)
    assert await lives.take(job) is not None
    if began:
        place = Place(boot_id(), clock.boot_now(), 4711)
        assert await lives.claim(job.task, job.attempt, place) is not None
    await see_to_the_dead(slow, home, AtOnce(0, lambda: 0), (), print)
    task = await get(slow, job.task)
    assert (task.state, task.attempt) == (State.RUNNING if began else State.QUEUED, 1)
    assert [each.id for each in await lives.kept()] == [job.task]
    for each in (lost, lives, slow):
        await each.close()


class AtOnce(Contact):
    """Whoever was seen silent is dead."""

    def dead(self, silent: Sequence[Silence]) -> list[Silence]:
        return list(silent)


class Unfit:
    """A crew that can carry out nothing."""

    full = False

    async def begin_now(self, task: Task) -> bool:
        return False

    def take_up(self, task: Task) -> None:
        raise AssertionError("it is unfit")

    def unfit(self, task: Task) -> str | None:
        return "there is no folder"

    def at_work(self) -> list[Task]:
        return []

    async def follow_record(self) -> None:
        pass


async def test_x2_a_take_that_a_crash_of_the_database_has_undone_is_not_the_end_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It need not be on disk before its machine goes on: what follows from it is not lost."""
    address = postgres_server.server().create()
    store = await open_node(address, "nd_one")
    crashes = iter([True])

    async def crash(store: NodeStore, job: Job, *, refused: bool) -> bool:
        if next(crashes, False):
            run(address, "UPDATE task SET node = NULL")
        return False  # nobody else is there

    monkeypatch.setattr(NodeStore, "hand_on", crash)
    await store.create(new_task("bg_unfit"), limit=PLENTY)
    station = Station(
        store,
        Home(tmp_path, address),
        Settings(),
        feed=Feed(store),
        node=Node("nd_one", NodeKind.WORKER, "here", 1),
        crew=Unfit(),
        report=print,
    )
    assert not await getattr(station, "_is_taken_up")(Job("bg_unfit", 1))  # noqa: B009
    assert (await get(store, "bg_unfit")).state is State.FAILED
    assert next(crashes, None) is None
    await store.close()


@pytest.mark.slow
async def test_x2_a_run_whose_claim_nobody_heard_of_is_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is lost right after it has written the claim: nobody carries it out."""
    monkeypatch.setenv("BACKBURNER_HOME", str(tmp_path))
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", "3")
    address = postgres_server.server().create()
    claim, lost, ran = NodeStore.claim, 0, 0

    async def lose_one(store: NodeStore, task_id: str, attempt: int, place: Place) -> Task | None:
        nonlocal lost
        claimed = await claim(store, task_id, attempt, place)
        if claimed is not None and not lost:
            lost += 1
            raise StoreAway("the database was lost while it wrote")
        return claimed

    monkeypatch.setattr(NodeStore, "claim", lose_one)
    has_it = Backburner.open(address)

    @has_it.tool(background=True)
    async def work() -> int:
        nonlocal ran
        ran += 1
        return 7

    async with has_it, Backburner.open(address) as asks:
        await has_it.runs.begin()
        task = await asks.session("chat").spawn("work", {})
        await task.wait(60)
    assert (task.state, task.result, task.record.attempt) == (State.SUCCEEDED, 7, 2)
    assert (lost, ran) == (1, 1)


async def test_x2_what_is_being_ended_is_not_begun_again_under_the_same_name(
    tmp_path: Path,
) -> None:
    """The end of a try that came to nothing would hit it."""
    address = postgres_server.server().create()
    store = await open_node(address, "nd_one")
    await store.create(new_task("bg_again", spec={"command": "x", "log": [1, 1]}), limit=PLENTY)
    task = await store.take(Job("bg_again", 1))
    assert task is not None
    worker = ProcessWorker(store, Home(tmp_path, address), Settings(), print)
    gone = asyncio.Event()
    getattr(worker, "_fencing").end(("bg_again", 1), gone.wait)  # noqa: B009 - as by `adopt`
    assert not await worker.start_now(task)
    worker.start(task)
    looking = asyncio.create_task(worker.work())
    await asyncio.wait([looking], timeout=0.5)
    assert (await get(store, "bg_again")).state is State.QUEUED
    gone.set()

    async def is_seen_to() -> bool:  # there is nothing to start it with
        await worker.work()
        return (await get(store, "bg_again")).state is State.FAILED

    looking.cancel()
    await asyncio.wait([looking])
    await wait_until_async(is_seen_to)
    await worker.close()
    await store.close()


@pytest.mark.slow
async def test_x2_a_claim_of_the_last_process_that_comes_late_is_seen_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wire was cut when it was sent, and was whole again when the next process had looked."""
    monkeypatch.setenv("BACKBURNER_HOME", str(tmp_path))
    address, home = postgres_server.server().create(), tmp_path / "machine"
    async with Backburner.open(address) as bb:
        await bb.set_queue("elsewhere", 1)
        task = await bb.session("chat").run("echo done", queue="elsewhere")
        last = await open_node(address, "nd_one")
        async with machine(address, home) as node:
            await node.known()
            folder = Home(home, address).attempt(task.id, 1)
            Path(folder.path).mkdir(parents=True)
            Path(folder.wrapper).write_bytes(BLANK)
            place = Place(boot_id(), clock.boot_now(), 4711)
            assert await last.claim(task.id, 1, place) is not None

            async def is_tried_again() -> bool:
                record = (await task.refresh()).record
                return (record.state, record.attempt) == (State.QUEUED, 2)

            await wait_until_async(is_tried_again)
        await last.close()
