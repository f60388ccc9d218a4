"""X10 with X2: the record lists the files of a task that lie where all machines read them."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from backburner.model.errors import ArtifactsUnreachable, StoreAway, StoreClosed
from backburner.model.home import Home
from backburner.model.limits import Settings
from backburner.model.states import State
from backburner.model.task import StoredArtifacts, Task
from backburner.runtime.artifacts import Bringer
from backburner.store.engine import Job
from backburner.store.postgres.node import NodeStore, open_node
from tests import postgres_server
from tests.store.conformance.making import ENDINGS, PLACE, PLENTY, get, new_task
from tests.waiting import wait_until_async


class Machine:
    """A node with one task, whose files the test adds."""

    def __init__(self, folder: Path, store: NodeStore, task: Task) -> None:
        self.depot = folder / "depot"
        self.store = store
        self.task = task
        self.home = Home(folder / "node", store.address)
        self.said: list[str] = []
        self.begin()

    def begin(self) -> None:
        """As a worker that has just started: it knows of nothing that was brought."""
        self.store.before_end.clear()
        settings = Settings(artifacts=f"file://{self.depot}")
        self.at_work = [self.task]
        self.bringer = Bringer(
            self.store, self.home, settings, lambda: self.at_work, self.said.append
        )

    def adds(self, name: str) -> None:
        folder = Path(self.home.attempt(self.task.id, 1).artifacts)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)

    async def listed(self) -> list[str]:
        stored = (await get(self.store, self.task.id)).artifacts
        return [] if stored is None else sorted(stored.sizes)


async def started(store: NodeStore, name: str) -> Task:
    await store.create(new_task(name), limit=PLENTY)
    await store.take(Job(name, 1))
    task = await store.claim(name, 1, PLACE)
    assert task is not None
    return task


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    store = await open_node(postgres_server.server().create(), "nd_1")
    made = Machine(tmp_path, store, await started(store, "bg_adds"))
    yield made
    made.bringer.close()
    await store.close()


async def test_x2_what_was_brought_while_the_record_was_away_is_listed_when_it_is_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.adds("1.txt")
    await machine.bringer.bring_all(machine.task)

    async def is_away(*_: object) -> bool:
        raise StoreAway("the database is away")

    monkeypatch.setattr(machine.store, "put_artifacts", is_away)
    machine.adds("2.txt")
    with pytest.raises(StoreAway):
        await machine.bringer.bring_all(machine.task)
    assert await machine.listed() == ["1.txt"]
    monkeypatch.undo()
    assert await machine.store.finish(machine.task.id, 1, ENDINGS["succeeded"]) is not None
    assert await machine.listed() == ["1.txt", "2.txt"]


@pytest.mark.slow
async def test_x2_a_worker_that_is_started_again_keeps_the_list_though_the_place_is_away(
    machine: Machine,
) -> None:
    """The machine may be lost before the place is back."""
    machine.adds("1.txt")
    await machine.bringer.bring_all(machine.task)
    away = machine.depot.with_name("away")
    os.rename(machine.depot, away)
    machine.depot.write_text("in the way")
    machine.begin()
    machine.adds("2.txt")
    running = asyncio.create_task(machine.bringer.run())
    await wait_until_async(lambda: any("not brought" in each for each in machine.said))
    assert await machine.listed() == ["1.txt"]
    machine.depot.unlink()
    os.rename(away, machine.depot)
    await wait_until_async(lambda: _lists(machine, ["1.txt", "2.txt"]))
    running.cancel()


async def test_x2_what_a_program_that_leaves_cannot_bring_it_does_not_end_either(
    machine: Machine,
) -> None:
    """Whoever comes next does both."""
    machine.adds("1.txt")
    machine.bringer.close()
    with pytest.raises(StoreClosed):
        await machine.store.finish(machine.task.id, 1, ENDINGS["succeeded"])
    assert (await get(machine.store, machine.task.id)).state is State.RUNNING
    machine.begin()
    assert await machine.store.finish(machine.task.id, 1, ENDINGS["succeeded"]) is not None
    assert await machine.listed() == ["1.txt"]


async def test_x5_a_task_whose_files_cannot_be_brought_holds_up_no_other(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may change its files for as long as it runs."""
    machine.adds("1.txt")
    other = await started(machine.store, "bg_other")
    bring = Bringer._bring  # pyright: ignore[reportPrivateUsage]

    async def bring_one(bringer: Bringer, task: Task) -> None:
        if task.id == other.id:
            raise ArtifactsUnreachable("the file became shorter")
        await bring(bringer, task)

    monkeypatch.setattr(Bringer, "_bring", bring_one)
    machine.at_work.insert(0, other)
    running = asyncio.create_task(machine.bringer.run())
    await wait_until_async(lambda: _lists(machine, ["1.txt"]))
    await wait_until_async(lambda: any(other.id in each for each in machine.said))
    running.cancel()


async def test_x10_of_another_place_nothing_is_listed_before_it_is_there(machine: Machine) -> None:
    machine.adds("1.txt")
    await machine.bringer.bring_all(machine.task)
    elsewhere = StoredArtifacts(1, "s3://bucket", "folder", {})
    assert await machine.store.begin_artifacts(machine.task.id, elsewhere)
    assert await machine.listed() == []


async def _lists(machine: Machine, names: list[str]) -> bool:
    return await machine.listed() == names
