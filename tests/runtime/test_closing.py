"""How an attempt that is over reaches the record, whatever it ended with, and whoever was quicker.

A real record and real folders; the job itself is not needed.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from backburner.model.ending import Ending
from backburner.model.home import Home
from backburner.model.order import Order
from backburner.model.states import ErrorKind, Kind, State
from backburner.model.task import Task
from backburner.runtime.closing import Closing
from backburner.runtime.scribe import UNRECORDABLE, Scribe
from backburner.store.protocol import Scope, Store
from backburner.store.sqlite.store import open_store
from tests.store.conformance.making import PLACE, PLENTY, get, new_task, queued, running


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


BAD = {
    "no number": Ending.failed(ErrorKind.ERROR, "no", result=float("nan")),
    "no JSON": Ending.failed(ErrorKind.ERROR, "no", result={1, 2}),
    "too deep": Ending.failed(ErrorKind.ERROR, "no", result=deep(100_000)),
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
async def store(home: Home) -> AsyncIterator[Store]:
    opened = open_store(home.root, "boot")
    yield opened
    await opened.close()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def closing(store: Store, home: Home, said: list[str]) -> Closing:
    return Closing(store, home, Scribe(store, said.append), lambda _: None, said.append)


def result_of(home: Home, task: Task) -> Any:
    return json.loads(Path(home.attempt(task.id, task.attempt).result).read_text())


@pytest.mark.parametrize("name", BAD)
async def test_x2_what_the_record_does_not_take_has_an_end_all_the_same(
    store: Store, home: Home, closing: Closing, said: list[str], name: str
) -> None:
    ran, never_ran = await running(store), await queued(store)
    await closing.finish(ran, BAD[name])
    await closing.refuse(never_ran, BAD[name])
    for task in (ran, never_ran):
        ended = await get(store, task.id)
        assert (ended.state, ended.error) == (State.FAILED, UNRECORDABLE.error)
        assert result_of(home, task) == UNRECORDABLE.document()
    assert sum("cannot be recorded as it is" in each for each in said) == 2


@pytest.mark.parametrize("name", ["no number", "no JSON"])
async def test_x2_nor_is_an_attempt_tried_for_ever_to_be_written_down(
    store: Store, closing: Closing, name: str
) -> None:
    await store.create(new_task("bg_again", order=Order(retries=1)), limit=PLENTY)
    task = await store.claim("bg_again", 1, PLACE)
    assert task is not None
    assert await closing.fail_try(task, BAD[name])
    again = await get(store, task.id)
    assert (again.state, again.attempt) == (State.QUEUED, 2)


async def test_d8_the_children_of_an_agent_go_on_where_its_end_is_dropped(
    store: Store, closing: Closing
) -> None:
    """It has ended before, or was taken over: what runs in its session now is not its own."""
    agent = await running(store, kind=Kind.AGENT)
    assert await store.finish(agent.id, agent.attempt, Ending.canceled()) is not None
    child = await running(store, scope=Scope(agent.owner, agent.id))
    await closing.finish(agent, Ending.exited(0))
    assert (await get(store, child.id)).stop is None
    assert (await get(store, agent.id)).state is State.CANCELED


async def test_d8_they_end_with_it_where_it_is_not(store: Store, closing: Closing) -> None:
    agent = await running(store, kind=Kind.AGENT)
    child = await running(store, scope=Scope(agent.owner, agent.id))
    await closing.finish(agent, Ending.exited(0))
    assert (await get(store, child.id)).stop is not None
