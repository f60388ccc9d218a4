"""E4, E11, C3, X2: moments in which two things happen to a run at once. Found by random lives."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from backburner import AgentRequest, Backburner, ErrorKind, State
from backburner.model.ending import Ending
from backburner.model.home import Home
from backburner.runtime.runs.archive import put_files
from backburner.runtime.runs.recovery import recover
from tests.faults.homes import waiting_starts
from tests.faults.victims import nobody_keeps
from tests.runtime.runs.test_recovery import application, begun
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


def report(_: str) -> None:
    """Nobody listens."""


async def test_e11_what_the_keeper_can_start_is_left_to_the_keeper(
    home: Path, tmp_path: Path
) -> None:
    """Else both use the folder of the same attempt, and the keeper empties it first."""
    with nobody_keeps(home):
        with application(home, "count_up", tmp_path) as (task_id, _):
            wait_until(lambda: begun(tmp_path) == 1)
        async with Backburner.open(home) as bb:
            await recover(bb.store, Home(home), report)
            task = await bb.store.get(task_id)
            assert task is not None
            assert (task.state, task.hand_over is not None) == (State.QUEUED, True)
            assert await bb.store.waiting_for_application() == []
            await bb.session("s").stop(task_id)


async def test_x2_an_application_that_closes_while_it_registers_leaves_no_lock(
    home: Path, tmp_path: Path
) -> None:
    with application(home, "closure", tmp_path) as (task_id, _):
        wait_until(lambda: begun(tmp_path) == 1)
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(task_id)

        async def queued() -> bool:
            return (await task.refresh()).state is State.QUEUED

        await wait_until_async(queued)
    bb = Backburner.open(home)

    @bb.tool(background=True, idempotent=True)
    async def closure(folder: str) -> int:
        await asyncio.Event().wait()
        return 0

    async with bb:
        await asyncio.to_thread(int)  # the worker has begun to take it up
    held = [link for link in map(_target, os.listdir("/proc/self/fd")) if f"{home}/workers" in link]
    assert held == []


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


async def test_e4_a_stop_that_meets_the_death_of_the_application_leaves_the_files(
    home: Path, tmp_path: Path
) -> None:
    with nobody_keeps(home):
        with application(home, "closure", tmp_path) as (task_id, _):
            wait_until(lambda: begun(tmp_path) == 1)
        async with Backburner.open(home) as bb:
            task = await bb.session("s").task(task_id)
            await bb.store.request_stop(task_id, bb.session("s").scope, 0.0)
            await recover(bb.store, Home(home), report)
            await task.refresh()
            assert task.state is State.CANCELED
            paths = task.document()["paths"]
            assert [Path(paths[name]).exists() for name in ("log", "result")] == [True, True]


async def test_e10_a_stop_does_not_change_what_a_dead_keeper_has_decided(
    home: Path, tmp_path: Path
) -> None:
    """It had orphaned the run, and died before the record said so."""
    orphaned = Ending.failed(ErrorKind.ORPHANED, "the application that carried it out has died")
    with nobody_keeps(home):
        with application(home, "only_once", tmp_path) as (task_id, _):
            wait_until(lambda: begun(tmp_path) == 1)
        put_files(Home(home).attempt(task_id, 1), orphaned.document())
        async with Backburner.open(home) as bb:
            task = await bb.session("s").task(task_id)
            await bb.store.request_stop(task_id, bb.session("s").scope, 0.0)
            await recover(bb.store, Home(home), report)
            await task.refresh()
            assert (task.state, task.error) == (State.FAILED, orphaned.error)
            result = json.loads(Path(task.document()["paths"]["result"]).read_text())
            assert result["error"]["kind"] == "orphaned"


async def test_e4_a_child_that_ends_with_its_agent_before_its_start_leaves_the_files(
    home: Path,
) -> None:
    with nobody_keeps(home):
        async with Backburner.open(home) as bb:

            async def starts(request: AgentRequest) -> str:
                await request.session.run("sleep 3600")
                return "done"

            bb.agent("starts", starts)
            agent = await bb.session("s").ask("go", agent="starts")
            await agent.wait(30)

            async def ended() -> bool:
                return (await bb.session(agent.id).tasks())[0].state.terminal

            await wait_until_async(ended)
            (child,) = await bb.session(agent.id).tasks()
            await wait_until_async(lambda: waiting_starts(home) == [])
            paths = child.document()["paths"]
            assert [Path(paths[name]).exists() for name in ("log", "result")] == [True, True]


async def test_c3_a_stop_stays_a_stop_when_the_application_closes(home: Path) -> None:
    async with Backburner.open(home) as bb:
        begun = asyncio.Event()

        @bb.tool(background=True)
        async def dawdles() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.to_thread(ending.wait, 0.3)

        import threading

        ending = threading.Event()
        task = await bb.session("s").spawn("dawdles")
        await begun.wait()
        await bb.store.request_stop(task.id, bb.session("s").scope, 5.0)
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(task.id)
        assert task.state is State.CANCELED
