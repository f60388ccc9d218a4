"""X2: what runs on a machine that was away is ended there when it is over, whatever happened."""

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.model import clock
from backburner.model.ending import Ending
from backburner.model.errors import UsageError
from backburner.model.home import Home
from backburner.model.states import ErrorKind
from backburner.model.task import Task
from backburner.runtime.node_home import NodeHome
from backburner.runtime.retention import Rule, prune
from backburner.store.postgres.node import NodeStore
from backburner.work.process import condition
from tests.faults.victims import is_running
from tests.nodes.machine import left_running, machine
from tests.nodes.workers import WorkerProcess
from tests.waiting import wait_until_async

ORPHANED = Ending.failed(ErrorKind.ORPHANED, "its machine was not heard of")

pytestmark = [pytest.mark.slow]


async def test_x2_what_others_end_while_its_machine_comes_back_is_ended_there(
    address: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ours when the machine looks, and nobody's a moment later."""
    async with Backburner.open(address) as bb:
        task, pid = await left_running(bb, home)
        kept, orphaned = NodeStore.kept, False

        async def take_away(store: NodeStore) -> list[Task]:
            nonlocal orphaned
            seen = await kept(store)
            if not orphaned:
                orphaned = await store.finish(task.id, 1, ORPHANED) is not None
                assert [each.id for each in seen] == [task.id]
            return seen

        monkeypatch.setattr(NodeStore, "kept", take_away)
        async with machine(address, home):
            await wait_until_async(lambda: orphaned and not is_running(pid))
        await task.refresh()
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED


async def test_x2_what_could_not_be_adopted_and_is_over_by_then_is_ended(
    address: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that came back lacked descriptors, and others took it for dead meanwhile."""
    async with Backburner.open(address) as bb:
        task, pid = await left_running(bb, home)
        tries = 0

        def refused(_: object) -> condition.Condition:
            nonlocal tries
            tries += 1
            raise OSError(errno.EMFILE, "too many open files")

        monkeypatch.setattr(condition, "inspect", refused)
        async with machine(address, home):
            await wait_until_async(lambda: tries)
            assert await bb.store.finish(task.id, 1, ORPHANED) is not None
            await wait_until_async(lambda: not is_running(pid))


async def test_x2_what_was_forgotten_since_is_ended_before_its_folder_goes(
    address: str, home: Path
) -> None:
    """What carries out tools beside the worker is open first, and forgets what is old."""
    async with Backburner.open(address) as bb:
        task, pid = await left_running(bb, home)
        assert await bb.store.finish(task.id, 1, ORPHANED) is not None
        pruned = await prune(bb.store, Home(home, address), Rule(before=clock.now() + 1))
        assert (pruned.count, await bb.store.get(task.id)) == (1, None)
        async with machine(address, home):
            await wait_until_async(lambda: not is_running(pid))


async def test_x2_a_worker_finds_what_it_left_by_whatever_link_it_comes_to_its_home(
    shared: Backburner, new_home: Callable[[], Path], address: str, tmp_path: Path
) -> None:
    home, link = new_home(), tmp_path / "link"
    worker = await asyncio.to_thread(WorkerProcess, address, home)
    began = tmp_path / "began"
    task = await shared.session("chat").run(f"echo $$ >{began}; exec tail -f {began}")
    await wait_until_async(lambda: began.exists() and began.read_text().strip())
    worker.kill()
    assert await shared.store.finish(task.id, 1, ORPHANED) is not None
    link.symlink_to(home)
    worker = await asyncio.to_thread(WorkerProcess, address, link)
    await wait_until_async(lambda: not is_running(int(began.read_text())))
    await asyncio.to_thread(worker.leave)


async def test_x2_the_home_of_a_keeper_is_no_folder_for_a_worker(home: Path, address: str) -> None:
    """It would end what runs there, as it is in no record that the worker knows."""
    async with Backburner.open(home):
        pass
    with pytest.raises(UsageError, match="a record of its own"):
        NodeHome(Home(home, address))
