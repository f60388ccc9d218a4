"""E9: limits and firings hold whoever races for them."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from backburner import Backburner, Settings, State
from backburner.model.home import Home
from backburner.runtime.schedules.clockwork import Clockwork
from backburner.store.sqlite.store import open_store
from backburner.work.process.identity import boot_id
from tests.conftest import REPOSITORY
from tests.faults.homes import waiting_starts
from tests.faults.victims import nobody_keeps
from tests.runtime.schedules.times import expect_since, minutes_ago
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow

PROCESSES = 4


def race(home: Path, *arguments: str) -> list[str]:
    """Several processes at once; everything that they were answered."""
    command = [sys.executable, "-m", "tests.runtime.schedules.adder", str(home), *arguments]
    racers = [
        subprocess.Popen(
            command, cwd=REPOSITORY, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(PROCESSES)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    return [answer for racer in racers for answer in racer.communicate()[0].split()]


async def test_e9_at_most_five_schedules_though_processes_race(home: Path) -> None:
    answers = race(home, "tight", "4")
    made = {answer for answer in answers if answer.startswith("sc_")}
    assert len(made) == 5
    assert answers.count("limit") == PROCESSES * 4 - 5
    async with Backburner.open(home) as bb:
        assert {each.id for each in await bb.session("tight").schedules()} == made
    assert set(waiting_starts(home)) == made


async def test_e12_one_id_is_one_schedule_though_processes_race(home: Path) -> None:
    assert race(home, "same", "3", "nightly") == ["nightly"] * PROCESSES * 3
    async with Backburner.open(home) as bb:
        (schedule,) = await bb.session("same").schedules()
    assert schedule.record.hand_over is not None
    assert waiting_starts(home) == ["nightly"]


async def test_e9_a_firing_never_runs_twice_though_two_keepers_race(home: Path) -> None:
    """Which the lock of the keeper prevents; the record holds without it too."""
    clockworks: list[Clockwork] = []
    with nobody_keeps(home):
        async with Backburner.open(home) as bb:
            session = bb.session("race")
            schedule = await session.schedule("* * * * *", "true", missed="all", overlap="parallel")
            await expect_since(bb, schedule, minutes_ago(20))
            stores = [open_store(home, boot_id()) for _ in range(3)]
            reports: list[str] = []
            clockworks = [
                Clockwork(store, Home(home), Settings(), reports.append) for store in stores
            ]
            ticking = [asyncio.create_task(clockwork.run()) for clockwork in clockworks]

            async def fired() -> bool:
                return (await schedule.refresh()).record.fired >= 20

            await wait_until_async(fired)
            await schedule.cancel()
            for task in ticking:
                task.cancel()
            await asyncio.wait(ticking)
            for clockwork, store in zip(clockworks, stores, strict=True):
                await clockwork.close()
                await store.close()
            assert reports == []
            tasks = await session.tasks(limit=100)
            firings = await schedule.firings(limit=100)
            assert len(tasks) == len(firings) == schedule.record.fired
            assert {task.id for task in tasks} == {firing.task for firing in firings}
            assert {task.state for task in tasks} == {State.QUEUED}
            # What the others had prepared for the same firings is gone.
            assert sorted(waiting_starts(home)) == sorted(task.id for task in tasks)
            for task in tasks:
                await task.stop()
