"""E12: what crashed starts and prunes have left in a home is removed, and nothing else."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.model.home import Home
from backburner.work import handover
from backburner.work.process.mark import marking_children
from backburner.work.process.tree import Tree
from backburner.work.process.wrapper import Launch
from tests.faults.homes import waiting_starts
from tests.faults.victims import (
    kill_all_of_ours,
    kill_keeper,
    nobody_keeps,
    unique_seconds,
    wait_for_keeper,
)
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

HOURS = 3600.0


def aged(path: Path, hours: float) -> Path:
    """As if nobody had touched it for so long."""
    then = time.time() - hours * HOURS
    os.utime(path, (then, then))
    return path


LAUNCH = Launch(["true"], "/", {"SECRET": "x" * 5000}, 0o022, 1024)


def left(home: Path, task_id: str, hours: float, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a caller leaves for a start, as if so long ago."""
    then = time.time() - hours * HOURS
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: then)
        return handover.leave(Home(home), task_id, LAUNCH)


def leave_folder(home: Path) -> Path:
    """What is left where a program died between two steps of forgetting a task."""
    folder = home / "tasks" / "bg_halfforgotten00.2"
    folder.mkdir(parents=True)
    (folder / "output.log").write_text("old output")
    return aged(folder, 2)


async def test_e12_prune_sweeps_what_no_task_owns(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what is young, which may belong to a start that is under way, nor what is owned."""
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        kept = await (await session.run("echo kept")).wait(timeout=30)
        kill_all_of_ours(home)
        with nobody_keeps(home):
            left(home, "bg_neverwritten0000", 2, monkeypatch)
            with monkeypatch.context() as patch:
                now = time.time()
                patch.setattr(time, "time", lambda: now - 2 * HOURS)
                waiting = await session.run("echo still to come")
            left(home, kept.id, 2, monkeypatch)  # its start was made long ago
            left(home, "bg_underway00000000", 0, monkeypatch)
            orphan = leave_folder(home)
            owned = aged(home / "tasks" / f"{kept.id}.1", 2)

            assert await bb.prune() == 0
            assert waiting_starts(home) == [waiting.id, "bg_underway00000000"]
            assert (orphan.exists(), owned.exists()) == (False, True)
        await bb.session("another").run("true")  # calls a keeper
        await waiting.wait(timeout=30)
        assert (await waiting.output()).text == "still to come\n"
        assert (await kept.output()).text == "kept\n"


def start_of(tree: Tree) -> "subprocess.Popen[bytes]":
    """A process of an attempt."""
    with marking_children(tree.mark):
        return subprocess.Popen(["sleep", unique_seconds()])


async def test_x2_the_folder_of_what_runs_is_left_to_who_is_to_end_it(home: Path) -> None:
    """Its machine was away, and its task is forgotten: it is found by its folder."""
    orphan = leave_folder(home)
    left = start_of(Tree(str(home), orphan.name.partition(".")[0], 2, None))
    async with Backburner.open(home) as bb:
        await bb.prune()
        assert orphan.exists()
        left.kill()
        left.wait()
        await bb.prune()
        assert not orphan.exists()


async def test_x3_the_file_of_launches_does_not_grow_with_their_number(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        for _ in range(20):
            await (await session.run("true")).wait(timeout=30)
        launches = home / "launches"
        await wait_until_async(lambda: waiting_starts(home) == [])
        assert launches.stat().st_blocks * 512 <= 4096
        assert await bb.prune() == 0
        assert launches.stat().st_size == 0


@pytest.mark.slow
async def test_e12_a_new_keeper_sweeps_by_itself(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run("sleep 3600")
        left(home, "bg_neverwritten0000", 2, monkeypatch)
        orphan = leave_folder(home)
        dead = kill_keeper(home)  # after that: the next one looks as soon as it is there
        wait_for_keeper(home, other_than=dead)
        wait_until(lambda: not orphan.exists() and waiting_starts(home) == [])
        await task.stop(force=True)
