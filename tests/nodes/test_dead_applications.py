"""E11, X2: what an application or a worker had that dies, is slow, or leaves."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from backburner import (
    Backburner,
    Session,
    State,
    Task,
)
from backburner.model.states import ErrorKind
from backburner.store.engine import Job, Silence
from backburner.store.postgres.node import open_node
from tests.nodes.conftest import NewApplication, NewWorker
from tests.nodes.holding import SHOP, SOON, begun, told
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]


async def test_e11_what_a_killed_application_had_is_taken_up_once_or_orphaned(
    shared: Backburner, new_application: NewApplication, folder: Path
) -> None:
    dying = new_application(**SOON)
    again, once = (dying.start("chat", tool, folder=str(folder)) for tool in ("hold", "hold_once"))
    await wait_until_async(lambda: begun(folder) == 2)
    living = [new_application(**SOON) for _ in range(2)]
    dying.kill()
    session = shared.session("chat")
    await _expect_taken_up_and_orphaned(session, folder, again, once)
    assert all(each.process.poll() is None for each in living)


async def test_e11_what_a_killed_worker_had_is_taken_up_once_or_orphaned(
    shared: Backburner, new_worker: NewWorker, folder: Path
) -> None:
    soon = ("--dead-after", "2", *SHOP)
    dying = new_worker(*soon)
    session = shared.session("chat")
    again = await session.spawn("hold", {"folder": str(folder)})
    once = await session.spawn("hold_once", {"folder": str(folder)})
    asked = await session.ask(str(folder), agent="patient")
    await wait_until_async(lambda: begun(folder) == 3)
    new_worker(*soon)
    dying.kill()
    await asked.wait(timeout=60)
    assert asked.error is not None
    assert asked.error.kind is ErrorKind.ORPHANED
    await _expect_taken_up_and_orphaned(session, folder, again.id, once.id, asked.id)


async def test_e11_a_worker_that_is_started_again_sees_to_its_tools_at_once(
    shared: Backburner, new_worker: NewWorker, folder: Path
) -> None:
    """It knows that its last process is dead, long before others would."""
    worker = new_worker("--dead-after", "3600", *SHOP)
    session = shared.session("chat")
    again = await session.spawn("hold", {"folder": str(folder)})
    once = await session.spawn("hold_once", {"folder": str(folder)})
    stopped = await session.spawn("hold_once", {"folder": str(folder)})
    await wait_until_async(lambda: begun(folder) == 3)
    await asyncio.to_thread(worker.kill)
    stopping = asyncio.create_task(stopped.stop())
    await wait_until_async(lambda: _is_to_stop(stopped))
    await asyncio.to_thread(worker.start)
    await stopping
    assert stopped.state is State.CANCELED, "its process is gone, as was wished"
    await _expect_taken_up_and_orphaned(
        session, folder, again.id, once.id, why="started anew", also=[f"canceled {stopped.id}"]
    )


async def test_e11_nobody_says_of_a_silent_machine_that_it_has_stopped_something(
    shared: Backburner, new_worker: NewWorker, folder: Path
) -> None:
    soon = ("--dead-after", "2", *SHOP)
    dying = new_worker(*soon)
    session = shared.session("chat")
    task = await session.spawn("hold", {"folder": str(folder)})
    await wait_until_async(lambda: begun(folder) == 1)
    new_worker(*soon)
    await asyncio.to_thread(dying.kill)
    await task.stop()
    assert task.error is not None, "it may still run there"
    assert task.error.kind is ErrorKind.ORPHANED
    assert "asked for its end, and nobody knows" in task.error.message
    assert await told(session) == [f"failed {task.id}"]


async def _is_to_stop(task: Task) -> bool:
    return (await task.refresh()).record.stop is not None


async def _expect_taken_up_and_orphaned(
    session: Session,
    folder: Path,
    again: str,
    *orphans: str,
    why: str = "not heard of",
    also: Sequence[str] = (),
) -> None:
    for each in orphans:
        task = await (await session.task(each)).wait(timeout=60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED
        assert why in task.error.message
    task = await session.task(again)
    await wait_until_async(lambda: len(list(folder.glob(f"began-{again}-*"))) == 2)
    (folder / "go").touch()
    await task.wait(timeout=60)
    assert (task.state, task.result, task.record.attempt) == (State.SUCCEEDED, "held", 2)
    assert len(list(folder.glob(f"began-{again}-*"))) == 2
    for each in orphans:
        assert len(list(folder.glob(f"began-{each}-*"))) == 1
    ends = [*(f"failed {each}" for each in orphans), *also]
    assert sorted(await told(session)) == sorted([*ends, f"completed {again}"])


async def test_x2_an_application_that_was_only_slow_is_fenced_off(
    shared: Backburner, new_application: NewApplication, folder: Path
) -> None:
    slow = new_application(**SOON)
    again, once = (slow.start("chat", tool, folder=str(folder)) for tool in ("hold", "hold_once"))
    await wait_until_async(lambda: begun(folder) == 2)
    new_application(**SOON)
    slow.pause()
    session = shared.session("chat")
    orphan = await (await session.task(once)).wait(timeout=60)
    assert orphan.state is State.FAILED
    await wait_until_async(lambda: len(list(folder.glob(f"began-{again}-*"))) == 2)
    slow.go_on()
    await wait_until_async(lambda: len(list(folder.glob("cut-*"))) == 2, timeout=60)
    (folder / "go").touch()
    task = await (await session.task(again)).wait(timeout=60)
    assert (task.record.attempt, task.result) == (2, "held")
    assert sorted(await told(session)) == sorted([f"failed {once}", f"completed {again}"])
    # It lives, and takes on work again.
    assert (
        await (await session.task(slow.start("chat", "shout", text="x"))).wait(60)
    ).result == "X"


async def test_a_drained_worker_finishes_its_tools_and_told_again_hands_them_back(
    shared: Backburner, new_worker: NewWorker, folder: Path
) -> None:
    first = new_worker(*SHOP)
    session = shared.session("chat")
    task = await session.spawn("hold", {"folder": str(folder)})
    await wait_until_async(lambda: begun(folder) == 1)
    first.drain()
    await wait_until_async(lambda: "nothing more" in first.said())
    waiting = await session.spawn("shout", {"text": "x"})
    assert (await task.refresh()).state is State.RUNNING
    first.drain()
    await asyncio.to_thread(first.process.wait, 60)
    assert (await task.refresh()).state is State.QUEUED, first.said()
    new_worker(*SHOP)
    await wait_until_async(lambda: begun(folder) == 2)
    (folder / "go").touch()
    assert (await task.wait(timeout=60)).record.attempt == 2
    assert (await waiting.wait(timeout=60)).record.attempt == 1


@pytest.mark.parametrize("heeds", [True, False], ids=["heeds", "does not heed"])
async def test_e11_what_is_taken_up_where_it_still_runs_is_first_ended_there(
    shared: Backburner, address: str, heeds: bool
) -> None:
    """An application was out of touch; what it had is taken up again, by itself."""
    said: list[str] = []
    go = threading.Event()

    @shared.tool(background=True, idempotent=True)
    async def forever() -> None:
        me = len([word for word in said if word.startswith("begins")])
        said.append(f"begins {me}")
        try:
            if me == 0 and not heeds:
                await asyncio.shield(asyncio.to_thread(go.wait))
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if me == 0 and not heeds:
                await asyncio.to_thread(go.wait)
            raise
        finally:
            said.append(f"ends {me}")

    task = await shared.session("chat").spawn("forever")
    await wait_until_async(lambda: said == ["begins 0"])
    other = await open_node(address, "nd_other")
    seen = (await other.get(task.id)) or pytest.fail("it is gone")
    assert seen.place is not None
    silence = Silence(Job(task.id, 1), 0, dead=True, node=seen.place.worker, begun=True)
    assert await other.requeue_from(silence, "its machine was not heard of")
    await other.close()
    await wait_until_async(lambda: "begins 1" in said)
    if heeds:
        assert said == ["begins 0", "ends 0", "begins 1"]
    else:  # for a while it was waited for
        go.set()
        await wait_until_async(lambda: "ends 0" in said)
    await task.stop(force=True)
    assert (task.state, task.record.attempt) == (State.CANCELED, 2)
    assert said[-1] == "ends 1"
