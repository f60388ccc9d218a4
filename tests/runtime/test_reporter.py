"""X5: the attendant that takes a report over, with a record that fails and keepers that go.

A real record and a real file; only the failures are made: before a change, or after it was written.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from backburner.model.ending import Ending
from backburner.model.errors import StoreFull
from backburner.model.events import EventKind
from backburner.model.home import Home
from backburner.model.states import State
from backburner.runtime import report as report_module
from backburner.runtime.report import Reporter
from backburner.store.protocol import Store
from backburner.store.sqlite.store import open_store
from tests.store.conformance.making import get, running
from tests.waiting import pause_async, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

_CHANGES = {"note", "ask", "withdraw"}


class Failing:
    """A store whose changes fail now and then, before or after they are written."""

    def __init__(self, store: Store, chance: random.Random) -> None:
        self._store = store
        self._chance = chance
        self.failures = 0

    def __getattr__(self, name: str) -> Any:
        true = getattr(self._store, name)
        if name not in _CHANGES:
            return true

        async def change(*given: Any, **named: Any) -> Any:
            luck = self._chance.random()
            if luck < 0.15:
                self.failures += 1
                raise StoreFull("no room")
            answer = await true(*given, **named)
            if luck < 0.3:
                self.failures += 1
                raise StoreFull("no room for the answer")
            return answer

        return change


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
async def store(home: Home) -> AsyncIterator[Store]:
    opened = open_store(home.root, "boot")
    yield opened
    await opened.close()


def say(home: Home, task: str, number: int) -> None:
    folder = Path(home.attempt(task, 1).path)
    (folder / "artifacts").mkdir(parents=True, exist_ok=True)
    (folder / "artifacts" / f"a{number}").touch()
    lines = [
        {"artifact": f"a{number}"},
        {"ask": {"id": f"q{number}", "question": "?"}},
        {"status": f"s{number}"},
        {"withdraw": f"q{number}"},
        {"result": number},
    ]
    with (folder / "report").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize("seed", range(6))
async def test_x5_nothing_is_lost_or_taken_twice_whatever_fails(
    home: Home, store: Store, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(report_module, "_AGAIN_FIRST_S", 0.0001)
    monkeypatch.setattr(report_module, "_LOOK_EVERY_S", 0.001)
    chance = random.Random(seed)
    failing = Failing(store, chance)
    task = await running(store)
    folder = home.attempt(task.id, 1)
    count = 30
    for number in range(count):
        say(home, task.id, number)
        # A keeper that attends for a moment and dies, or is told that the job has ended.
        record = await get(store, task.id)
        reporter = Reporter(cast("Store", failing), record, folder, lambda _: None)
        attending = asyncio.create_task(reporter.attend())
        reporter.look()
        for _ in range(chance.randrange(12)):
            await pause_async(0, because="it dies in any step")
        if chance.random() < 0.5:
            await pause_async(chance.random() / 50, because="it dies at any time")
        attending.cancel()
        await asyncio.wait([attending])
    record = await get(store, task.id)
    reporter = Reporter(cast("Store", failing), record, folder, lambda _: None)
    ending = await reporter.conclude(Ending.exited(0))
    assert ending.result == count - 1
    assert failing.failures > 5
    events = await store.events(task.id)
    added = [event.data["name"] for event in events if event.kind is EventKind.ARTIFACT]
    assert added == [f"a{number}" for number in range(count)]
    asked = [event.data["question"] for event in events if event.kind is EventKind.ASKED]
    assert asked == sorted(set(asked), key=lambda name: int(name[1:]))
    record = await get(store, task.id)
    assert (record.detail, record.state) == (f"s{count - 1}", State.RUNNING)
    assert record.reported == Path(folder.report).stat().st_size


class FailingOnce:
    """A store whose first change fails: it is written, or it is not."""

    def __init__(self, store: Store, *, written: bool) -> None:
        self._store = store
        self._written = written
        self._failed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def note(self, *given: Any) -> None:
        if self._failed:
            await self._store.note(*given)
            return
        self._failed = True
        if self._written:
            await self._store.note(*given)
        raise StoreFull("no room")


@pytest.mark.parametrize("written", [False, True])
async def test_x5_a_mistake_is_noted_once_though_the_record_failed(
    home: Home, store: Store, monkeypatch: pytest.MonkeyPatch, *, written: bool
) -> None:
    monkeypatch.setattr(report_module, "_AGAIN_FIRST_S", 0.0001)
    task = await running(store)
    folder = home.attempt(task.id, 1)
    Path(folder.path).mkdir(parents=True)
    Path(folder.report).write_text('garbage\ngarbage\n{"result": 1}\n')
    failing = FailingOnce(store, written=written)
    reporter = Reporter(cast("Store", failing), task, folder, lambda _: None)
    assert (await reporter.conclude(Ending.exited(0))).result == 1
    events = await store.events(task.id)
    (noted,) = [event.data["detail"] for event in events if event.kind is EventKind.DETAIL]
    assert noted.startswith("report: a line is no JSON")


async def test_x5_a_reporter_that_is_cancelled_in_a_commit_waits_for_it(
    home: Home, store: Store
) -> None:
    """Else whoever concludes would read again what is being written."""
    task = await running(store)
    say(home, task.id, 1)
    reporter = Reporter(store, task, home.attempt(task.id, 1), lambda _: None)
    attending = asyncio.create_task(reporter.attend())
    reporter.look()
    for _ in range(2):
        await pause_async(0, because="then it waits for its commit")
    attending.cancel()
    await asyncio.wait([attending])
    await reporter.conclude(Ending.exited(0))
    kinds = [event.kind for event in await store.events(task.id)][2:]
    assert kinds.count(EventKind.ARTIFACT) == kinds.count(EventKind.RESULT) == 1


async def test_x3_a_job_that_reports_without_end_is_recorded_ever_more_slowly(
    home: Home, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_module, "_CREDIT", 5.0)
    monkeypatch.setattr(report_module, "_PACE_S", 0.01)
    monkeypatch.setattr(report_module, "_LOOK_EVERY_S", 0.001)
    task = await running(store)
    path = Path(home.attempt(task.id, 1).report)
    path.parent.mkdir(parents=True)
    path.touch()
    reporter = Reporter(store, task, home.attempt(task.id, 1), lambda _: None)
    attending = asyncio.create_task(reporter.attend())
    number = 0

    async def enough() -> bool:
        nonlocal number
        number += 1
        with path.open("a") as file:
            file.write(f'{{"status": "s{number}"}}\n')
        reporter.look()
        return len(await store.events(task.id)) - 2 >= 7

    began = asyncio.get_running_loop().time()
    await wait_until_async(enough)
    assert asyncio.get_running_loop().time() - began > 0.9, "the last ones took a second each"

    async def last() -> bool:
        return (await get(store, task.id)).detail == f"s{number}"

    await wait_until_async(last, message="the last word is recorded, too")
    attending.cancel()
    await asyncio.wait([attending])
