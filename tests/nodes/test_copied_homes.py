"""X2: two machines never have one name, however the folder of one came to another."""

import concurrent.futures
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from backburner import Backburner, State
from backburner.model.errors import Conflict
from backburner.model.home import Home
from backburner.runtime.node_home import NodeHome
from tests.nodes.conftest import NewWorker
from tests.nodes.workers import WorkerProcess

pytestmark = [pytest.mark.slow]


def name_in(home: Path) -> str:
    return (home / "node").read_text().split()[0]


def started_elsewhere(home: Path, name: str) -> None:
    """As on a copy of the whole machine, or after a restart of it."""
    home.mkdir(exist_ok=True)
    file = home / "node"
    file.touch()
    file.write_text(f"{name} {file.stat().st_ino} another-boot\n")


def test_a_folder_that_was_copied_has_a_name_of_its_own(tmp_path: Path) -> None:
    first = NodeHome(Home(tmp_path / "first"))
    with pytest.raises(Conflict, match="another worker"):
        NodeHome(Home(tmp_path / "first"))
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    second = NodeHome(Home(tmp_path / "second"))
    assert second.name != first.name
    assert not second.may_be_a_copy
    first.close()
    again = NodeHome(Home(tmp_path / "first"))
    assert (again.name, again.may_be_a_copy) == (first.name, False), "only started again"
    started_elsewhere(tmp_path / "first", first.name)
    for _ in range(2):  # it may be killed before the record has answered
        again.close()
        again = NodeHome(Home(tmp_path / "first"))
        assert (again.name, again.may_be_a_copy) == (first.name, True)
    again.rename()
    assert again.name not in (first.name, second.name)
    for each in (second, again):
        each.close()
    assert name_in(tmp_path / "first") == again.name


async def test_x2_a_machine_that_was_copied_leaves_the_first_one_alone(
    shared: Backburner, new_worker: NewWorker, address: str, tmp_path: Path
) -> None:
    first = new_worker(BACKBURNER_DEAD_AFTER_S="6")
    os.mkfifo(tmp_path / "gate")
    task = await shared.session("chat").run("read line < gate", cwd=tmp_path)
    started_elsewhere(tmp_path / "copy", name_in(first.home))
    second = WorkerProcess(address, tmp_path / "copy", BACKBURNER_DEAD_AFTER_S="6")
    try:
        assert "takes a name of its own" in second.said()
        assert name_in(second.home) != name_in(first.home)
        assert first.process.poll() is None
        (tmp_path / "gate").write_text("go\n")
        await task.wait(timeout=60)
        assert (task.state, task.record.attempt) == (State.SUCCEEDED, 1)
    finally:
        second.leave()


async def test_x2_a_machine_that_was_restarted_keeps_its_name(
    shared: Backburner, new_worker: NewWorker
) -> None:
    worker = new_worker(BACKBURNER_DEAD_AFTER_S="6")
    name = name_in(worker.home)
    worker.kill()
    started_elsewhere(worker.home, name)
    worker.start()
    assert name_in(worker.home) == name
    task = await shared.session("chat").run("true")
    await task.wait(timeout=60)
    assert task.state is State.SUCCEEDED


async def test_x2_of_two_copies_that_start_at_one_moment_one_keeps_the_name(
    shared: Backburner, address: str, tmp_path: Path
) -> None:
    """Neither has been heard of when the other one asks."""
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        started_elsewhere(home, "nd_1_copied")
    with concurrent.futures.ThreadPoolExecutor() as both:
        start = partial(WorkerProcess, address, BACKBURNER_DEAD_AFTER_S="6")
        workers = list(both.map(start, homes))
    try:
        names = [name_in(home) for home in homes]
        assert names.count("nd_1_copied") == 1
        assert len(set(names)) == 2
        task = await shared.session("chat").run("true")
        await task.wait(timeout=60)
        assert task.state is State.SUCCEEDED
    finally:
        for worker in workers:
            worker.leave()
