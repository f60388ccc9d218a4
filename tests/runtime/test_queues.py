"""X9: queues: a width that holds whoever starts, pause and resume, and what is refused."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from backburner import (
    Backburner,
    Conflict,
    LimitReached,
    NotFound,
    Settings,
    State,
    Task,
    UsageError,
)
from backburner.model.events import EventKind
from tests.conftest import REPOSITORY
from tests.faults.homes import waiting_starts
from tests.faults.victims import kill_keeper
from tests.waiting import pause_async, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

STARTER = """
import asyncio, sys
from backburner import Backburner

async def main(home, line, count):
    async with Backburner.open(home) as bb:
        for _ in range(int(count)):
            await bb.session("s").run(line, queue="build")

asyncio.run(main(*sys.argv[1:]))
"""

LINE = (
    "echo + >>{0}/log; until [ $(grep -cF + {0}/log) -ge 3 ]; do sleep 0.05; done;"
    " sleep 0.15; echo - >>{0}/log"
)
"""The first three end when all of them have begun."""


def start_many(home: Path, line: str) -> list["subprocess.Popen[bytes]"]:
    """Three processes that start eight tasks each."""
    program = [sys.executable, "-c", STARTER, str(home), line, "8"]
    return [subprocess.Popen(program, cwd=REPOSITORY) for _ in range(3)]


def most_at_once(folder: Path) -> int:
    """From what the jobs wrote at their starts and ends, in the order in which they did."""
    now = most = 0
    for line in (folder / "log").read_text().splitlines():
        now += 1 if line == "+" else -1
        most = max(most, now)
    return most


@pytest.mark.slow
@pytest.mark.parametrize("killing", [False, True], ids=["", "keepers are killed"])
async def test_x9_the_width_holds_when_several_processes_start_many(
    home: Path, tmp_path: Path, killing: bool
) -> None:
    async with Backburner.open(home) as bb:
        await bb.set_queue("build", 3)
        starters = start_many(home, LINE.format(tmp_path))
        if killing:
            for _ in range(3):
                await asyncio.to_thread(kill_keeper, home)
                await pause_async(0.3, because="the keeper is to get somewhere")
        for starter in starters:
            assert await asyncio.to_thread(starter.wait, 60) == 0
        tasks = await bb.session("s").tasks(limit=100)
        assert len(tasks) == 24
        for task in tasks:
            await task.wait(60)
            assert task.state is State.SUCCEEDED
        assert most_at_once(tmp_path) == 3
        (queue,) = await bb.queues()
        assert (queue.waiting, queue.running) == (0, 0)
        await wait_until_async(lambda: waiting_starts(home) == [])


async def test_x9_the_oldest_is_started_first(shared_home: Path, tmp_path: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        await bb.set_queue("line", 1)
        session = bb.session("line")
        lines = [f"echo {number} >>{tmp_path}/log" for number in range(6)]
        tasks = [await session.run(line, queue="line") for line in lines]
        await asyncio.gather(*(task.wait(30) for task in tasks))
        assert (tmp_path / "log").read_text().split() == list("012345")


async def states(tasks: Sequence[Task]) -> list[State]:
    return [(await task.refresh()).state for task in tasks]


async def test_x9_a_pause_lets_run_what_runs_and_a_resume_goes_on(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        await bb.set_queue("paused", 1)
        session = bb.session("pause")
        line = f"until test -e {tmp_path}/go; do sleep 0.02; done"
        first, second = [await session.run(line, queue="paused") for _ in range(2)]

        async def first_runs() -> bool:
            return (await first.refresh()).state is State.RUNNING

        await wait_until_async(first_runs)
        assert (await bb.pause_queue("paused")).paused
        (tmp_path / "go").touch()
        await first.wait(30)
        await pause_async(0.3, because="the second one would start by now")
        record = (await second.refresh()).record
        assert record.state is State.QUEUED
        assert record.wait is not None
        assert (record.wait.paused, record.wait.place) == (True, 1)
        assert not (await bb.resume_queue("paused")).paused
        await second.wait(30)
        assert second.state is State.SUCCEEDED


async def test_x9_a_wider_queue_starts_more_and_a_narrower_one_ends_nothing(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        await bb.set_queue("wide", 1)
        session = bb.session("wide")
        line = f"until test -e {tmp_path}/go; do sleep 0.02; done"
        tasks = [await session.run(line, queue="wide") for _ in range(4)]

        async def running(count: int) -> bool:
            return (await states(tasks)).count(State.RUNNING) == count

        await wait_until_async(lambda: running(1))
        await bb.set_queue("wide", 3)
        await wait_until_async(lambda: running(3))
        queue = await bb.set_queue("wide", 1)
        assert (queue.width, queue.running, queue.waiting) == (1, 3, 1)
        (tmp_path / "go").touch()
        await asyncio.gather(*(task.wait(30) for task in tasks))
        assert set(await states(tasks)) == {State.SUCCEEDED}


async def test_x9_a_stop_takes_it_out_of_the_line(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        await bb.set_queue("stop", 1)
        session = bb.session("stop")
        tasks = [await session.run("sleep 3600", queue="stop") for _ in range(3)]
        await tasks[1].stop()
        assert tasks[1].state is State.CANCELED
        await tasks[0].stop(force=True)

        async def third_runs() -> bool:
            return (await tasks[2].refresh()).state is State.RUNNING

        await wait_until_async(third_runs)
        await tasks[2].stop(force=True)
        kinds = [event.kind async for event in tasks[1].events()]
        assert kinds == [EventKind.CREATED, EventKind.FINISHED]


async def test_x9_bad_queues_are_refused_with_a_remedy(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("bad")
        for name in ("", "a b", "-x", "x" * 65, "a/b", "ä"):
            with pytest.raises(UsageError, match="cannot be the name"):
                await bb.set_queue(name, 1)
        for width in (0, -1, 10_001):
            with pytest.raises(UsageError, match="from 1 to 10000"):
                await bb.set_queue("fine", width)
        with pytest.raises(NotFound, match=r"no queue 'none'.*queue set"):
            await session.run("true", queue="none")
        for refused in (bb.pause_queue, bb.resume_queue, bb.remove_queue):
            with pytest.raises(NotFound, match="no queue 'none'"):
                await refused("none")
        assert await session.tasks() == []
        assert waiting_starts(shared_home) == []


async def test_x9_a_queue_in_use_cannot_be_removed(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        await bb.set_queue("used", 1)
        task = await bb.session("used").run("sleep 3600", queue="used")
        with pytest.raises(Conflict, match="is in use"):
            await bb.remove_queue("used")
        await task.stop(force=True)
        again = await task.rerun()
        assert again.record.queue == "used"
        await again.stop(force=True)
        await bb.remove_queue("used")
        assert "used" not in {queue.name for queue in await bb.queues()}
        assert (await again.refresh()).record.queue is None


async def test_x9_a_queue_holds_more_than_may_run_and_has_a_limit_too(shared_home: Path) -> None:
    settings = Settings(shell_per_session=2, queued_per_session=4)
    async with Backburner.open(shared_home, settings=settings) as bb:
        await bb.set_queue("full", 1)
        await bb.pause_queue("full")
        session = bb.session("full")
        tasks = [await session.run("true", queue="full") for _ in range(4)]
        with pytest.raises(LimitReached, match="4 is the limit"):
            await session.run("true", queue="full")
        await (await session.run("true")).wait(30)
        for task in tasks:
            await task.stop()
