"""E9: a keeper stays while a schedule is active, comes back for it, and loses no firing."""

import random
import secrets
from collections import Counter
from pathlib import Path

import pytest

from backburner import Backburner, ScheduleState, State
from backburner.model.clock import SECOND
from tests.faults.record import is_intact
from tests.faults.victims import keeper_of, kill, kill_all_of_ours, wait_for_keeper
from tests.runtime.schedules.times import expect_since, minutes_ago, soon
from tests.waiting import pause, wait_until, wait_until_async

pytestmark = pytest.mark.slow

IDLE_S = 0.2
ROUNDS = 6


async def test_e9_the_keeper_stays_while_a_schedule_is_active(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_KEEPER_IDLE_S", str(IDLE_S))
    async with Backburner.open(home) as bb:
        schedule = await bb.session().schedule("0 0 1 1 *", "true")
        keeper = wait_for_keeper(home)
    pause(5 * IDLE_S + 1.5, because="an idle keeper would have left by then")
    assert keeper_of(home) == keeper
    async with Backburner.open(home) as bb:
        again = await bb.session().find_schedule(schedule.id)
        assert (await again.pause()).state is ScheduleState.PAUSED
        wait_until(lambda: keeper_of(home) is None, message="it stays for a paused schedule")
        await again.resume()
        wait_for_keeper(home)
        await again.cancel()
        wait_until(lambda: keeper_of(home) is None, message="it stays for a canceled schedule")


async def test_e9_any_application_brings_the_keeper_back_for_a_schedule(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session()
        schedule = await session.schedule(soon(3), "echo made up for")
        task_id = schedule.document()["task_id"]
        wait_for_keeper(home)
    kill_all_of_ours(home)
    pause(3.1, because="its time passes while nobody is there")
    async with Backburner.open(home) as bb:
        session = bb.session()

        async def started() -> bool:
            return bool(await session.tasks())

        await wait_until_async(started)
        task = await (await session.task(task_id)).wait(30)
        assert (await task.output()).text == "made up for\n"


async def test_e9_x2_a_killed_keeper_loses_no_firing_and_doubles_none(
    home: Path, tmp_path: Path
) -> None:
    """Keepers are killed around the moments of firing; each nominal time starts one task."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    line = f"echo $BACKBURNER_TASK_ID >>{tmp_path}/ran"
    async with Backburner.open(home) as bb:
        session = bb.session()
        schedule = await session.schedule("* * * * *", line, missed="all", overlap="parallel")
        once = [await session.schedule(soon(2 + n / 3), line) for n in range(4)]
        minutes = 40
        since = minutes_ago(minutes)
        await expect_since(bb, schedule, since)
        for _ in range(ROUNDS):
            pause(dice.uniform(0.0, 0.4), because="the moment of a kill is random")
            if (keeper := keeper_of(home)) is not None:
                kill(keeper)
            if dice.random() < 0.3:
                kill_all_of_ours(home)
                await bb.tasks.see_to_keeper()

        async def all_fired() -> bool:
            for each in (schedule, *once):
                await each.refresh()
            return schedule.record.fired >= minutes and all(each.state.ended for each in once)

        await wait_until_async(all_fired, timeout=60)
        await schedule.pause()
        firings = await schedule.firings(limit=200)
        nominal = [firing.nominal_at for firing in firings[::-1]]
        assert nominal == [since + n * 60 * SECOND for n in range(len(nominal))]
        ids = [firing.task for firing in firings] + [each.record.last_task for each in once]
        assert None not in ids
        for task_id in ids:
            task = await (await session.task(str(task_id))).wait(60)
            assert task.state is State.SUCCEEDED
        assert Counter((tmp_path / "ran").read_text().split()) == Counter(map(str, ids))
        assert {task.id for task in await session.tasks(limit=200)} == set(ids)
        await schedule.cancel()
    assert is_intact(home)
