"""X2, E11: what is over in the record is ended on its machine, and holds up nothing else."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from backburner.model.home import Home
from backburner.runtime import fencing
from backburner.runtime.fencing import Fencing
from backburner.work.process.mark import marking_children
from backburner.work.process.tree import Tree
from tests.faults.victims import unique_seconds
from tests.waiting import wait_until_async

ONE, TWO = ("bg_one", 1), ("bg_one", 2)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    for task, number in (ONE, TWO):
        (tmp_path / "tasks" / f"{task}.{number}").mkdir(parents=True)
    return Home(tmp_path)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def ends(home: Home, said: list[str]) -> Fencing:
    return Fencing(home, partial(tree_of, home), said.append)


def tree_of(home: Home, task: str, attempt: int) -> Tree:
    return Tree(str(home.root), task, attempt, None)


@pytest.fixture
def processes(home: Home) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """One of each attempt."""
    started: list[subprocess.Popen[bytes]] = []
    for task, number in (ONE, TWO):
        with marking_children(tree_of(home, task, number).mark):
            started.append(subprocess.Popen(["sleep", unique_seconds()], env=os.environ))
    yield started
    for process in started:
        process.kill()
        process.wait()


async def test_what_is_over_is_ended_and_nothing_else(
    ends: Fencing, processes: list["subprocess.Popen[bytes]"], said: list[str]
) -> None:
    await ends.end_others({TWO})
    over, ours = processes
    assert (over.poll(), ours.poll()) == (-9, None)
    assert said == ["bg_one: attempt 1 is over, and is ended here"]
    await ends.end_others({TWO})
    assert len(said) == 1
    await ends.close()


async def test_what_cannot_be_ended_is_tried_again_beside_everything_else(
    ends: Fencing,
    processes: list["subprocess.Popen[bytes]"],
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever the failure is: a table of processes that is full is none of files."""
    monkeypatch.setattr(fencing, "_LONGEST_S", 0.01)
    kill, full = Tree.kill, True

    def refused(tree: Tree) -> list[int]:
        if full and tree.attempt == 1:
            raise RuntimeError("can't start new thread")
        return kill(tree)

    monkeypatch.setattr(Tree, "kill", refused)
    await ends.end_others(set())
    first, second = processes
    await wait_until_async(lambda: second.poll() is not None)
    await wait_until_async(lambda: said.count(said[-1]) > 1 and "can't start" in said[-1])
    assert first.poll() is None
    full = False
    await wait_until_async(lambda: first.poll() is not None)
    await ends.close()


async def test_an_end_is_under_way_once_for_each_attempt(ends: Fencing) -> None:
    begun: list[tuple[str, int]] = []
    held = asyncio.Event()

    async def work(attempt: tuple[str, int]) -> None:
        begun.append(attempt)
        await held.wait()

    for attempt in (ONE, ONE, TWO):
        ends.end(attempt, partial(work, attempt))
    await wait_until_async(lambda: len(begun) == 2)
    held.set()
    await wait_until_async(lambda: len(asyncio.all_tasks()) == 1)
    ends.end(ONE, partial(work, ONE))
    await wait_until_async(lambda: begun == [ONE, TWO, ONE])
    await ends.close()


async def test_who_leaves_tries_once_more(ends: Fencing) -> None:
    """What could not be ended is not left to whoever comes back here, where that can be helped."""
    tries = 0

    async def work() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise RuntimeError("can't start new thread")

    ends.end(ONE, work)
    await wait_until_async(lambda: tries == 1)
    assert ends.is_ending(ONE)
    await ends.close()
    assert tries == 2
    assert not ends.is_ending(ONE)


async def test_who_leaves_lets_go_of_what_cannot_be_ended(ends: Fencing) -> None:
    ends.end(ONE, asyncio.Event().wait)
    await ends.close()
    assert len(asyncio.all_tasks()) == 1
