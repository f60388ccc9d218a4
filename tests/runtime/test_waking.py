"""Whoever waits is woken, and does not look now and then (issue 2, part 6).

Stated as ratios: what one durable commit costs here and now is measured beside it.
"""

import time
from pathlib import Path
from statistics import median

import pytest

from backburner import Backburner, EventKind, Session, State, Task
from backburner.model import clock
from tests.faults.victims import kill_keeper
from tests.waiting import wait_until_async

TRIES = 40


@pytest.mark.slow
async def test_the_end_of_a_job_wakes_whoever_waits_within_a_few_commits(
    shared_home: Path,
) -> None:
    """A look once a second would be late by a quarter of one in the quickest quarter of the cases.

    Those, because a busy machine holds up the others: a commit needs one process to be quick, and
    the news of it needs two.
    """
    late: list[float] = []
    commits: list[float] = []
    async with Backburner.open(shared_home) as bb:
        session = bb.session("waking")
        for number in range(TRIES):
            task = await (await session.run(f"sleep 0.0{number % 7}")).wait(timeout=30)
            assert task.record.finished_at is not None
            # From before the commit that the keeper makes.
            late.append((clock.now() - task.record.finished_at) / clock.SECOND)
            commits.append(await seconds_of_a_commit(session))
    commit, quickest = median(commits), sorted(late)[: TRIES // 4]
    assert quickest[-1] < 8 * commit, (quickest, commit)


async def seconds_of_a_commit(session: Session) -> float:
    """How long it takes until a change of ours is on disk: an acknowledgement."""
    signal = (await session.told(limit=2 * TRIES))[-1]
    began = time.perf_counter()
    assert await signal.ack()
    return time.perf_counter() - began


@pytest.mark.slow
async def test_x2_events_are_followed_across_the_death_of_the_keeper(
    home: Path, tmp_path: Path
) -> None:
    """E10, A3: numbered without a gap, the adoption among them, and over with the end."""
    go = tmp_path / "go"
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"until [ -e {go} ]; do sleep 0.01; done; exit 3")
        seen: list[tuple[int, EventKind]] = []
        async for event in task.events():
            seen.append((event.number, event.kind))
            if event.kind is EventKind.STARTED:
                await wait_until_async(lambda: runs(task))
                kill_keeper(home)
            elif event.kind is EventKind.ADOPTED:
                go.touch()
        kinds = [EventKind.CREATED, EventKind.STARTED, EventKind.ADOPTED, EventKind.FINISHED]
        assert seen == list(enumerate(kinds, start=1))
        assert (await task.refresh()).exit_code == 3


async def runs(task: Task) -> bool:
    """Whether its command is there: its shell has noted that it got the word."""
    folder = Path(task.document()["paths"]["dir"])
    return (await task.refresh()).state is State.RUNNING and bool(
        (folder / "wrapper").read_text().strip()
    )
