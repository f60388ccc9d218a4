"""E12: what crashed starts and prunes have left in a home is removed, and nothing else."""

import os
import time
from pathlib import Path

import pytest

from backburner import Backburner
from tests.faults.victims import (
    kill_all_of_ours,
    kill_keeper,
    nobody_keeps,
    wait_for_keeper,
)
from tests.waiting import wait_until

HOURS = 3600.0


def aged(path: Path, hours: float) -> Path:
    """As if nobody had touched it for so long."""
    then = time.time() - hours * HOURS
    os.utime(path, (then, then))
    return path


def leave_orphans(home: Path) -> list[Path]:
    """What is left where a program died between two steps: a launch file, folders of a task."""
    for folder in ("launch", "tasks"):
        (home / folder).mkdir(exist_ok=True)
    launch = home / "launch" / "bg_neverwritten0000.0a1b2c3d4e5f"
    launch.write_text("{}")
    folder = home / "tasks" / "bg_halfforgotten00.2"
    folder.mkdir()
    (folder / "output.log").write_text("old output")
    return [aged(launch, 2), aged(folder, 2)]


async def test_e12_prune_sweeps_what_no_task_owns(home: Path) -> None:
    """Not what is young, which may belong to a start that is under way, nor what is owned."""
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        kept = await (await session.run("echo kept")).wait(timeout=30)
        kill_all_of_ours(home)
        with nobody_keeps(home):
            waiting = await session.run("echo still to come")
            (hand_over,) = (home / "launch").iterdir()
            orphans = leave_orphans(home)
            young = home / "launch" / "bg_underway00000000.0a1b2c3d4e5f"
            young.write_text("{}")
            owned = [aged(hand_over, 2), aged(home / "tasks" / f"{kept.id}.1", 2)]

            assert await bb.prune() == 0
            assert [path for path in orphans if path.exists()] == []
            assert [path for path in (young, *owned) if not path.exists()] == []
        await bb.session("another").run("true")  # calls a keeper
        await waiting.wait(timeout=30)
        assert (await waiting.output()).text == "still to come\n"
        assert (await kept.output()).text == "kept\n"


@pytest.mark.slow
async def test_e12_a_new_keeper_sweeps_by_itself(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run("sleep 3600")
        dead = kill_keeper(home)
        orphans = leave_orphans(home)
        wait_for_keeper(home, other_than=dead)
        wait_until(lambda: not any(path.exists() for path in orphans))
        await task.stop(force=True)
