"""A home whose disk fills up (X3, issue 2, part 8). `test_disk.py` runs this on a disk of its own.

Running jobs keep their exit codes, starts fail cleanly, limits hold, nothing is damaged, and when
there is room everything is as it should be: also when the keeper was killed meanwhile.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, Session, State, StoreFull, Task
from backburner.model.home import Home
from backburner.work.process.condition import Ended, Settled, inspect
from tests.faults.disks import PAGE, Disk
from tests.faults.homes import waiting_starts
from tests.faults.record import is_intact
from tests.faults.victims import (
    kill_all_of_ours,
    kill_keeper,
    processes_with,
    unique_seconds,
    wait_for_keeper,
)
from tests.waiting import pause_async, wait_until_async

JOBS = 5


@pytest.fixture(params=[False, True], ids=["keeper alive", "keeper killed"])
def disturb(request: pytest.FixtureRequest, home: Path) -> Callable[[], None]:
    """What happens once the disk is full."""

    def replace_keeper() -> None:
        wait_for_keeper(home, other_than=kill_keeper(home))

    return replace_keeper if request.param else lambda: None


async def test_running_jobs_keep_their_exit_codes(
    disk: Disk, home: Path, tmp_path: Path, disturb: Callable[[], None]
) -> None:
    """A3, X1: they end while the disk is full, and what they ended with is told afterwards."""
    go = tmp_path / "go"
    line = f"echo up; until [ -e {go} ]; do sleep 0.01; done; echo end; exit"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        jobs = [await session.run(f"{line} {n}", id=f"job-{n}") for n in range(JOBS)]
        for job in jobs:
            await said(job, "up")
        fill_up(disk, home)
        refused = await starts_are_refused(session, home)
        disturb()
        go.touch()
        await wait_until_async(lambda: all(exit_code_on_disk(home, job) for job in jobs))
        await pause_async(0.5, because="the keeper is to fail to write, more than once")

        assert disk.is_full()
        disk.clear()
        for number, job in enumerate(jobs):
            await job.wait(timeout=30)
            assert (job.exit_code, job.record.attempt) == (number, 1)
            assert (await job.output()).text == "up\nend\n"
            result = Path(job.document()["paths"]["result"])
            await wait_until_async(result.exists, message="no result.json")
        await all_is_well(session, refused)
    check_integrity(home)


async def test_limits_hold(disk: Disk, home: Path, disturb: Callable[[], None]) -> None:
    """A5, X2: no room is no reason to let a job run on."""
    number = unique_seconds()
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        limited = await session.run(f"exec sleep {number}", id="limited", max_runtime=5)
        await wait_until_async(lambda: processes_with(number))
        fill_up(disk, home)
        disturb()
        await wait_until_async(lambda: not processes_with(number), message="it runs for ever")
        assert disk.is_full()
        disk.clear()
        await limited.wait(timeout=30)
        assert limited.error is not None
        assert limited.error.kind is ErrorKind.TIMEOUT
        await all_is_well(session, [])
    check_integrity(home)


async def test_a_flood_that_filled_the_disk_while_nobody_kept_is_cut(
    disk: Disk, home: Path, tmp_path: Path
) -> None:
    """X3: bounding the log is what makes room; it must not wait for room."""
    go = tmp_path / "go"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        flood = await session.run(f"echo up; until [ -e {go} ]; do sleep 0.01; done; yes || exit 7")
        await said(flood, "up")
        kill_all_of_ours(home)
        go.touch()
        await wait_until_async(lambda: exit_code_on_disk(home, flood), timeout=60)
        assert disk.is_full()
    async with Backburner.open(home) as bb:  # the next call of anything brings a keeper
        session = bb.session("s")
        flood = await (await session.task(flood.id)).wait(timeout=30)
        assert (flood.state, flood.exit_code) == (State.FAILED, 7)
        assert not disk.is_full()
        await all_is_well(session, [])
    check_integrity(home)


async def said(task: Task, word: str) -> None:
    """Until the job has printed this."""

    async def printed() -> bool:
        return word in (await task.output()).text

    await wait_until_async(printed, message=f"{task} did not say {word!r}")


def fill_up(disk: Disk, home: Path) -> None:
    """Not a page is left, nor a byte in the last page of the keeper's log."""
    log = home / "keeper.log"
    with log.open("ab") as file:
        file.write(b"\n" * (PAGE - log.stat().st_size % PAGE))
    disk.fill()


async def starts_are_refused(session: Session, home: Path) -> list[str]:
    """Start until it is clear that there is no room; the ids that were refused.

    The first ones may find a place that the record has left in its own files.
    """
    refused: dict[str, str] = {}
    for number in range(200):
        name = f"start-{number}"
        try:
            await session.run("true", id=name)
        except StoreFull as error:
            refused[name] = str(error)
            if len(refused) == 5:
                break
    assert len(refused) == 5, "the disk was not full"
    for name, said in refused.items():
        assert "free some space" in said
        assert name not in waiting_starts(home)
        assert not list((home / "tasks").glob(f"{name}.*"))
    return list(refused)


def exit_code_on_disk(home: Path, task: Task) -> bool:
    """Whether the job has ended, and its exit code is where it cannot be lost."""
    return isinstance(inspect(Home(home).attempt(task.id, 1)), Ended | Settled)


async def all_is_well(session: Session, refused: list[str]) -> None:
    """There is room again: new tasks work, the old ones have ended, each is told once."""
    new = await session.run("echo new; exit 9")
    assert (await new.wait(timeout=30)).exit_code == 9
    tasks = {task.id: await task.wait(timeout=30) for task in await session.tasks(limit=500)}
    assert not tasks.keys() & set(refused)
    for name, task in tasks.items():
        if name.startswith("start-"):
            assert task.exit_code == 0 or (task.error and task.error.kind is ErrorKind.SPAWN)
    told = [signal.task for signal in await session.told(limit=500)]
    assert sorted(told) == sorted(tasks)


def check_integrity(home: Path) -> None:
    """SQLite's own word that nothing is damaged."""
    assert is_intact(home)
