"""X2: what tasks have left behind on a machine that died, or was taken for dead."""

import asyncio
from pathlib import Path

import pytest

from backburner import Backburner, Task
from backburner.model import clock
from backburner.model.events import EventKind
from backburner.runtime.retention import Rule, prune
from tests.faults.victims import is_running
from tests.nodes.conftest import NewWorker
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]

SOON = ("--dead-after", "2")


async def _left_behind(shared: Backburner, tmp_path: Path, queue: str) -> tuple[Task, int]:
    """A task that has ended, and the process of it that has not."""
    await shared.set_queue(queue, 5)
    file, began = tmp_path / "file", tmp_path / "began"
    file.touch()
    leave = f"setsid sh -c 'echo $$ >{began}.new; mv {began}.new {began}; exec tail -f {file}' &"
    wait = f"until test -e {began}; do sleep 0.05; done"
    task = await shared.session("chat").run(f"{leave} {wait}", queue=queue)
    await task.wait(60)
    assert task.record.leftovers == 1
    return task, int(began.read_text())


async def test_x2_a_stop_is_answered_though_the_machine_of_what_is_left_is_gone(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    dying = new_worker("--queue", "one", *SOON)
    task, pid = await _left_behind(shared, tmp_path, "one")
    new_worker("--queue", "two", *SOON)
    await asyncio.to_thread(dying.kill)
    async with asyncio.timeout(60):
        await task.stop()
    assert task.record.leftovers == 0
    (told,) = [
        event async for event in task.events(follow=False) if event.kind is EventKind.LEFTOVERS
    ]
    assert "not heard of" in told.data["reason"]
    assert "nobody knows whether" in told.data["reason"]
    assert is_running(pid), "nobody could end it"
    pruned = await prune(shared.store, shared.home, Rule(before=clock.now() + 1))
    assert (pruned.count, await shared.store.get(task.id)) == (1, None)
    await asyncio.to_thread(dying.start)
    await wait_until_async(lambda: not is_running(pid), message=dying.said)


@pytest.mark.parametrize("how", ["killed", "paused"])
async def test_x2_what_is_left_is_ended_by_its_machine_when_that_comes_back(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path, how: str
) -> None:
    away = new_worker("--queue", "one", *SOON)
    task, pid = await _left_behind(shared, tmp_path, "one")
    new_worker("--queue", "two", *SOON)
    await asyncio.to_thread(away.kill if how == "killed" else away.pause)
    await wait_until_async(lambda: _is_given_up(task))
    assert is_running(pid)
    await asyncio.to_thread(away.start if how == "killed" else away.go_on)
    await wait_until_async(lambda: not is_running(pid), message=away.said)
    kinds = [event.kind async for event in task.events(follow=False)]
    assert kinds.count(EventKind.LEFTOVERS) == 1


async def test_x2_what_a_machine_that_is_heard_of_has_left_behind_is_its_own(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    """Also where another one dies, and everybody looks."""
    worker = new_worker("--queue", "one", *SOON)
    task, pid = await _left_behind(shared, tmp_path, "one")
    dying = new_worker("--queue", "two", *SOON)
    await shared.set_queue("two", 5)
    file = tmp_path / "file"
    orphan = await shared.session("chat").run(f"exec tail -f {file}", queue="two")
    await wait_until_async(lambda: _begun(orphan))
    await asyncio.to_thread(dying.kill)
    await orphan.wait(60)
    assert (await task.refresh()).record.leftovers == 1
    assert is_running(pid)
    await task.stop(force=True)
    assert not is_running(pid), worker.said()
    pid_of_orphan = orphan.record.pid
    assert pid_of_orphan is not None
    await asyncio.to_thread(dying.start)
    await wait_until_async(lambda: not is_running(pid_of_orphan), message=dying.said)


async def _is_given_up(task: Task) -> bool:
    return (await task.refresh()).record.leftovers == 0


async def _begun(task: Task) -> bool:
    return (await task.refresh()).record.pid is not None
