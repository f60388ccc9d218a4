"""Work goes to machines that can do it: those that have its folder, its queue, its tool."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from backburner import Backburner, State
from backburner.model.states import ErrorKind, Kind
from backburner.model.task import NewTask
from backburner.store.engine import route_of_node, route_of_queue, route_of_work
from tests.nodes.conftest import NewWorker

pytestmark = [pytest.mark.slow]

SHOP = ("--tools", "tests.nodes.shop")
ONLY_THERE = "/proc/self/cwd/only-there"
"""A folder that each process has or has not: all workers of a test are on one machine."""


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Path, Path]:
    """Two of them, of which the second has the folder."""
    without, having = tmp_path / "without", tmp_path / "having"
    without.mkdir()
    (having / "only-there").mkdir(parents=True)
    return without, having


async def test_x10_a_command_is_handed_on_to_a_machine_that_has_its_folder(
    shared: Backburner,
    new_worker: NewWorker,
    machines: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    without = [new_worker(folder=machines[0]) for _ in range(2)]
    session = shared.session("chat")
    nowhere = await (await session.run("true", cwd=ONLY_THERE)).wait(timeout=60)
    assert nowhere.error is not None
    assert nowhere.error.kind is ErrorKind.SPAWN
    assert f"there is no folder {ONLY_THERE}" in nowhere.error.message
    assert "nor on any other live worker" in nowhere.error.message
    new_worker(folder=machines[1])
    for _ in range(3):  # whoever gets it first
        task = await (await session.run("pwd -P", cwd=ONLY_THERE)).wait(timeout=60)
        assert task.state is State.SUCCEEDED, task.error
        assert (await task.output()).text == f"{machines[1]}/only-there\n"
    assert all(worker.process.poll() is None for worker in without)


async def test_x10_a_tool_is_handed_on_to_a_machine_that_has_the_folder_of_its_session(
    shared: Backburner,
    new_worker: NewWorker,
    machines: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    new_worker(*SHOP, folder=machines[0])
    having = new_worker(*SHOP, folder=machines[1])
    session = shared.session("chat", folder=ONLY_THERE)
    for _ in range(3):
        task = await (await session.spawn("where", {})).wait(timeout=60)
        assert (task.state, task.result) == (State.SUCCEEDED, ONLY_THERE), task.error
    own = await (await shared.session("chat").spawn("where", {})).wait(timeout=60)
    assert isinstance(own.result, str)
    assert own.result.endswith("/sessions/local/chat"), "one of its own on each machine"
    having.leave()
    lost = await (await session.spawn("where", {})).wait(timeout=60)
    assert lost.error is not None
    assert lost.error.kind is ErrorKind.SPAWN


@pytest.mark.parametrize("name", ["gpu", "x" * 32, "y" * 33])
async def test_the_route_of_a_queue_is_the_same_in_the_database(
    shared: Backburner, name: str
) -> None:
    await shared.set_queue(name, 1)
    task = await shared.session("chat").run("true", queue=name)
    assert await _route(shared, task.id) == route_of_queue(name)


@pytest.mark.parametrize("name", ["plain", "n" * 40, 'with "quotes" \\ and', "ä\0b", ""])
async def test_the_route_of_an_agent_is_the_same_in_the_database(
    shared: Backburner, name: str
) -> None:
    spec = {"agent": name, "prompt": "x"}
    new = NewTask("bg_1", "local", "s", Kind.AGENT, "x", spec)
    await shared.store.create(new, limit=1)
    assert await _route(shared, "bg_1") == route_of_work(Kind.AGENT, name)


@pytest.mark.parametrize("queue", ["gpu", "y" * 33])
async def test_the_route_to_one_node_is_the_same_in_the_database(
    shared: Backburner, queue: str
) -> None:
    await shared.set_queue(queue, 1)
    task = await shared.session("chat").run("true", queue=queue)
    with psycopg.connect(shared.home.address) as connection:
        connection.execute("UPDATE backburner.task SET sent_to = 'nd_1'")
    assert await _route(shared, task.id) == route_of_node("nd_1", route_of_queue(queue))


async def _route(shared: Backburner, task_id: str) -> str:
    def ask() -> str:
        with psycopg.connect(shared.home.address) as connection:
            row = connection.execute(
                "SELECT route FROM backburner.task WHERE id = %s", [task_id]
            ).fetchone()
        assert row is not None
        return row[0]

    return await asyncio.to_thread(ask)
