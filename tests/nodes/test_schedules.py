"""E9, X10: all workers of a record fire its schedules; each firing happens once, at its time."""

import asyncio
from datetime import timedelta
from pathlib import Path
from statistics import median

import pytest

from backburner import Backburner
from backburner.model.clock import SECOND
from backburner.model.schedule import ScheduleState
from backburner.model.states import State
from tests.nodes.conftest import NewWorker
from tests.runtime.schedules.times import expect_since, minutes_ago, soon
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]

MISSED = 20
WORKERS = 3
PLACES = 2
"""Of each worker: most firings have to wait until the rest has ended."""

POLLING_S = 5
"""How often the engine looks for jobs that nobody has told it of."""


async def test_e9_x10_each_firing_is_one_task_that_runs_once_though_one_of_three_workers_dies(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    workers = [new_worker("--concurrency", str(PLACES)) for _ in range(WORKERS)]
    marks, go = tmp_path / "marks", tmp_path / "go"
    marks.mkdir()
    work = (
        f"echo ran >>{marks}/$BACKBURNER_TASK_ID; until [ -e {go} ]; do sleep 0.05; done; echo done"
    )
    session = shared.session("chat")
    often = await session.schedule("* * * * *", work, missed="all", overlap="parallel")
    moment = soon()
    once = await asyncio.gather(*(session.schedule(moment, work) for _ in range(4)))
    await expect_since(shared, often, minutes_ago(MISSED))
    # All places are taken, so each worker is in the middle of something, and most is still to come.
    await wait_until_async(lambda: len([*marks.iterdir()]) == WORKERS * PLACES)
    await asyncio.to_thread(workers[0].kill)

    async def all_have_fired() -> bool:
        fired = [(await each.refresh()).record.fired for each in once]
        return fired == [1] * len(once) and (await often.refresh()).record.fired >= MISSED

    await wait_until_async(all_have_fired)
    await often.cancel()
    go.touch()
    await asyncio.to_thread(workers[0].start)  # it goes on with what its last process has begun
    tasks = {task.id: await task.wait(timeout=60) for task in await session.tasks(limit=100)}

    firings = [f for each in (often, *once) for f in await each.firings(limit=100)]
    assert len(firings) >= MISSED + len(once)
    assert len({(firing.schedule, firing.nominal_at) for firing in firings}) == len(firings)
    assert len(tasks) == len(firings)
    assert {firing.task for firing in firings} == tasks.keys()
    assert {task.state for task in tasks.values()} == {State.SUCCEEDED}
    assert {name.name: name.read_text() for name in marks.iterdir()} == dict.fromkeys(
        tasks, "ran\n"
    )
    assert {(await each.refresh()).state for each in once} == {ScheduleState.DONE}


async def test_e9_a_single_time_is_fired_when_it_comes_and_not_when_somebody_looks(
    shared: Backburner, new_worker: NewWorker
) -> None:
    """Whoever looked every five seconds would be late for most by two and more, since the times are

    a second apart. One of them may be late here, because the machine is busy.
    """
    for _ in range(WORKERS):
        new_worker()
    session = shared.session("chat")
    first = soon()
    schedules = [
        await session.schedule(first + timedelta(seconds=later), "true")
        for later in range(POLLING_S)
    ]
    fired_late: list[float] = []
    begun_late: list[float] = []
    for schedule in schedules:
        await wait_until_async(schedule.firings)
        (firing,) = await schedule.firings()
        assert firing.task is not None
        task = await (await session.task(firing.task)).wait(timeout=60)
        assert task.record.started_at is not None
        fired_late.append((firing.at - firing.nominal_at) / SECOND)
        begun_late.append((task.record.started_at - firing.nominal_at) / SECOND)
    assert min(fired_late) >= 0
    assert median(fired_late) < 2, fired_late
    assert median(begun_late) < 2, begun_late
