"""E4: `output.log` and `result.json` exist for every end, also of what never ran."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from backburner import Backburner, Session, State, Task, UsageError
from backburner.model.task import Task as Record
from backburner.runtime.worker import ProcessWorker
from backburner.store.protocol import Store
from backburner.work.process.condition import BLANK
from tests.faults.victims import nobody_keeps
from tests.waiting import wait_until_async


def result_of(task: Task) -> Any:
    paths = task.document()["paths"]
    assert Path(paths["log"]).exists()
    return json.loads(Path(paths["result"]).read_text())


async def test_e4_of_one_that_was_stopped_before_its_start(home: Path) -> None:
    async with Backburner.open(home) as bb:
        with nobody_keeps(home):
            task = await bb.session("s").run("true")
            await task.stop()
        assert task.state is State.CANCELED
        assert result_of(task)["status"] == "canceled"
        assert (await task.output()).text == ""


async def test_e4_a_keeper_that_makes_its_files_meanwhile_writes_over_nothing(home: Path) -> None:
    """It has made the one that says how it stands, and is about to put into it that nothing is."""
    async with Backburner.open(home) as bb:
        with nobody_keeps(home):
            task = await bb.session("s").run("true")
            folder = bb.home.attempt(task.id, 1)
            os.makedirs(folder.path)
            fd = os.open(folder.wrapper, os.O_RDWR | os.O_CREAT, 0o600)
            await task.stop()
            os.pwrite(fd, BLANK, 0)
            os.close(fd)
        assert result_of(task)["status"] == "canceled"


async def test_e4_of_one_whose_ender_died_before_it_left_the_files(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        with nobody_keeps(home):
            task = await session.run("true")
            await bb.store.request_stop(task.id, session.scope, 1.0)  # by one that died then
            await task.wait(30)
            assert result_of(task)["status"] == "canceled"


async def test_e4_of_one_that_could_not_start(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(["no-such-program-here"])
        result = result_of(task)
        assert result["status"] == "failed"
        assert result["error"]["kind"] == "spawn"


@pytest.mark.slow
async def test_e4_of_those_that_are_stopped_in_the_moment_of_their_start(
    shared_home: Path,
) -> None:
    """The keeper may be about to start it, and empties its folder for that."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session("s")

        async def one() -> Task:
            task = await session.run("sleep 60")
            await task.stop(force=True)
            return task

        tasks = await asyncio.gather(*(one() for _ in range(40)))
        for task in tasks:
            assert task.state is State.CANCELED

        def all_there() -> bool:
            return all(Path(task.document()["paths"]["result"]).exists() for task in tasks)

        await wait_until_async(all_there, message="a result is missing")
        assert {result_of(task)["status"] for task in tasks} == {"canceled"}


@pytest.mark.parametrize("name", ["a\udcff", "nul\0", "\ud800"])
async def test_names_that_the_record_could_not_give_back(shared_home: Path, name: str) -> None:
    async with Backburner.open(shared_home) as bb:
        with pytest.raises(UsageError, match="name of a session"):
            bb.session(name)
        with pytest.raises(UsageError, match="name of a session"):
            bb.session("s", owner=name)
        for fine in ("ünïcode", "日本語", "with blank", "🙂"):
            assert bb.session(fine).name == fine


class StoppedMeanwhile:
    """A record in which what waits for the keeper is stopped as soon as the keeper has seen it."""

    def __init__(self, store: Store, session: Session) -> None:
        self._session = session
        self._store = store
        self.seen = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def waiting_for_keeper(self) -> Sequence[Record]:
        found = await self._store.waiting_for_keeper()
        for record in found:
            await (await self._session.task(record.id)).stop()
            self.seen.set()
        return found


async def test_e4_a_keeper_that_comes_too_late_does_not_say_that_it_could_not_start(
    home: Path,
) -> None:
    """A stop takes away what a task was to be started with: its files say that it was stopped."""
    async with Backburner.open(home) as bb:
        with nobody_keeps(home):
            session = bb.session("s")
            task = await session.run("true", env={"ITS": "own"})
            said: list[str] = []
            store = StoppedMeanwhile(bb.store, session)
            worker = ProcessWorker(cast("Store", store), bb.home, bb.settings, said.append)

            async def keep() -> None:
                while True:
                    await worker.work()

            looking = asyncio.create_task(keep())
            await store.seen.wait()
            await wait_until_async(lambda: worker.idle)
            looking.cancel()
            await asyncio.wait([looking])
            await worker.close()
        assert said == []
        assert (await task.refresh()).state is State.CANCELED
        assert result_of(task) == {"status": "canceled", "exit_code": None}
