"""X9: a new version takes over under running jobs. Never two keepers, never a lost or doubled task.

The other version is a copy of the package that runs in processes of its own.
"""

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from backburner import Backburner, EventKind, KeeperUnreachable, State, StoreUnusable, Task
from backburner.model.home import Home
from backburner.runtime import succession
from backburner.runtime.edition import UNKNOWN, ours
from backburner.runtime.election import sitting_keeper
from tests.faults.record import rows
from tests.faults.victims import (
    guardians_of,
    is_running,
    keeper_comes,
    keeper_of,
    keepers_of,
    kill,
    kill_keeper,
    processes_with,
    sleepers,
    unique_seconds,
    wait_for_keeper,
)
from tests.keeper.editions import FUTURE, Copy, copy_package
from tests.store.raw import Raw
from tests.waiting import pause_async, wait_until, wait_until_async

pytestmark = pytest.mark.slow


@pytest.fixture
def older(tmp_path: Path) -> Copy:
    return copy_package(tmp_path / "older", "0.0.1")


@pytest.fixture
def newer(tmp_path: Path) -> Copy:
    return copy_package(tmp_path / "newer", "99.0")


@pytest.fixture
def next_format(tmp_path: Path) -> Copy:
    return copy_package(tmp_path / "next", "99.0", migration=FUTURE)


def version_of_keeper(home: Path) -> str | None:
    sitting = sitting_keeper(Home(home))
    return None if sitting is None else sitting.edition.version


def one_keeper(home: Path) -> bool:
    return len(keepers_of(home)) == len(guardians_of(home)) == 1


async def kinds_of(task: Task) -> list[EventKind]:
    return [event.kind async for event in task.events(follow=False)]


async def was_adopted(task: Task) -> None:
    async def adopted() -> bool:
        return EventKind.ADOPTED in await kinds_of(task)

    await wait_until_async(adopted)


async def test_x9_a_newer_version_takes_over_under_a_running_job(home: Path, older: Copy) -> None:
    seconds = unique_seconds()
    task_id = older.run("--", f"echo one; sleep {seconds} & wait; echo two; exit 4")
    old = wait_for_keeper(home)
    wait_until(lambda: sleepers(seconds))
    assert version_of_keeper(home) == "0.0.1"
    async with Backburner.open(home) as bb:
        await keeper_comes(home, other_than=old)
        await wait_until_async(lambda: version_of_keeper(home) == ours().version)
        await wait_until_async(lambda: not is_running(old) and one_keeper(home))
        task = await bb.session("test").task(task_id)
        await was_adopted(task)
        kill(*sleepers(seconds))
        await task.wait(30)
        assert (task.exit_code, task.record.attempt) == (4, 1)
        assert (await task.output()).text.splitlines()[0] == "one"
        assert "two" in (await task.output()).text
        kinds = await kinds_of(task)
        assert kinds.count(EventKind.STARTED) == kinds.count(EventKind.FINISHED) == 1
        assert [signal.task for signal in await bb.session("test").told()] == [task_id]


async def test_x9_a_keeper_from_before_editions_were_said_is_older_than_all(
    home: Path, tmp_path: Path
) -> None:
    silent = copy_package(tmp_path / "silent", ours().version, silent=True)
    seconds = unique_seconds()
    task_id = silent.run("--", f"sleep {seconds} & wait; exit 5")
    wait_until(lambda: sleepers(seconds))
    sitting = sitting_keeper(Home(home))
    assert sitting is not None
    assert sitting.edition == UNKNOWN
    async with Backburner.open(home) as bb:
        await wait_until_async(lambda: version_of_keeper(home) == ours().version)
        kill(*sleepers(seconds))
        task = await (await bb.session("test").task(task_id)).wait(30)
        assert task.exit_code == 5


async def test_x9_a_newer_keeper_is_left_alone_and_works_for_older_programs(
    home: Path, newer: Copy
) -> None:
    newer.run("--id", "theirs", "--", "sleep 3600")
    keeper = wait_for_keeper(home)
    async with Backburner.open(home) as bb:
        task = await (await bb.session("test").run("exit 3")).wait(30)
        assert task.exit_code == 3
        assert keeper_of(home) == keeper
        assert version_of_keeper(home) == "99.0"
        await (await bb.session("test").task("theirs")).stop(force=True)
        wait_until(lambda: one_keeper(home))


async def test_x9_starts_of_both_versions_come_in_while_one_takes_over(
    home: Path, older: Copy, tmp_path: Path
) -> None:
    """Each runs once, whichever keeper was there when it came."""
    ran = tmp_path / "ran"
    long = older.run("--", "sleep 3600")
    commands = [older.started("run", "--", f"echo old{n} >>{ran}; sleep 0.1") for n in range(6)]
    async with Backburner.open(home) as bb:
        session = bb.session("test")
        tasks: list[Task] = []
        for number in range(30):
            tasks.append(await session.run(f"echo new{number} >>{ran}; sleep 0.1"))
            await pause_async(0.02, because="the starts are to be spread over the succession")
        for command in commands:
            out, _ = await asyncio.to_thread(command.communicate)
            tasks.append(await session.task(out.strip()))
        for task in tasks:
            await task.wait(60)
            assert task.state is State.SUCCEEDED
            kinds = await kinds_of(task)
            # One that was claimed and not yet begun when its keeper left is begun by the next.
            begun = kinds.count(EventKind.STARTED) - kinds.count(EventKind.REQUEUED)
            assert begun == kinds.count(EventKind.FINISHED) == 1
        expected = [f"old{n}" for n in range(6)] + [f"new{n}" for n in range(30)]
        assert sorted(ran.read_text().split()) == sorted(expected)
        await wait_until_async(lambda: version_of_keeper(home) == ours().version)
        await wait_until_async(lambda: one_keeper(home))
        told = [signal.task for signal in await session.told(limit=100)]
        assert sorted(told) == sorted(task.id for task in tasks)
        await (await session.task(long)).stop(force=True)


async def test_x9_kills_of_either_keeper_during_the_succession_lose_nothing(
    home: Path, older: Copy, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    chance = random.Random(9)
    seconds = unique_seconds()
    task_id = older.run("--", f"sleep {seconds} & wait; exit 6")
    wait_until(lambda: sleepers(seconds))
    async with Backburner.open(home) as bb:
        session = bb.session("test")
        tasks: list[Task] = []
        for number in range(8):
            tasks.append(await session.run(f"echo {number} >>{ran}"))
            await pause_async(chance.uniform(0, 0.4), because="the kill comes at any moment")
            victims = keepers_of(home) if number % 2 else [keeper_of(home) or 0]
            for pid in victims:
                if pid:
                    kill(pid)
        for task in tasks:
            await task.wait(60)
            assert task.state is State.SUCCEEDED
        assert sorted(ran.read_text().split()) == [str(number) for number in range(8)]
        await wait_until_async(lambda: version_of_keeper(home) == ours().version)
        kill(*sleepers(seconds))
        job = await (await session.task(task_id)).wait(60)
        assert (job.exit_code, job.record.attempt) == (6, 1)
        await wait_until_async(lambda: one_keeper(home))


async def test_x9_the_record_is_brought_up_when_the_older_keeper_has_left(
    home: Path, next_format: Copy
) -> None:
    """Here we are the older ones. What we have open says so, and changes nothing any more."""
    seconds = unique_seconds()
    known = rows(home, "PRAGMA user_version") if (home / "backburner.db").exists() else None
    assert known is None
    async with Backburner.open(home) as bb:
        session = bb.session("test")
        task = await session.run(f"sleep {seconds} & wait; exit 7")
        wait_until(lambda: sleepers(seconds))
        old = wait_for_keeper(home)
        waiting = asyncio.create_task(task.wait(60))
        shown = await asyncio.to_thread(next_format.cli, "ls", "-q")
        assert shown.stdout.strip() == task.id, shown
        assert rows(home, "PRAGMA user_version") == [(ours().format + 1,)]
        assert not is_running(old), "it left before the record was changed"
        with pytest.raises(StoreUnusable, match="newer Backburner"):
            await waiting
        with pytest.raises(StoreUnusable, match="newer Backburner") as refusal:
            await session.run("true")
        assert "start this program again" in refusal.value.remedy
    wait_until(lambda: version_of_keeper(home) == "99.0")
    with pytest.raises(StoreUnusable):
        async with Backburner.open(home):
            pass
    kill(*sleepers(seconds))
    assert next_format.cli("wait", task.id).returncode == 7
    assert rows(home, "SELECT count(*) FROM task") == [(1,)]
    assert rows(home, "SELECT key, state FROM signal") == [(f"{task.id}:end", "pending")]


async def test_x9_a_keeper_leaves_when_the_record_is_changed_under_it(home: Path) -> None:
    """By a program that did not ask it to: its statements may not fit any more."""
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("test").run(f"sleep {seconds} & wait; exit 8")
        wait_until(lambda: sleepers(seconds))
        keeper = wait_for_keeper(home)
    with Raw(home / "backburner.db") as raw:
        raw("PRAGMA user_version = 9999")
    wait_until(lambda: not is_running(keeper), message="it stayed")
    wait_until(lambda: not guardians_of(home), message="its guardian stayed")
    assert "a newer Backburner has changed the record" in (home / "keeper.log").read_text()
    assert sleepers(seconds)
    with Raw(home / "backburner.db") as raw:
        raw(f"PRAGMA user_version = {ours().format}")
    async with Backburner.open(home) as bb:
        await keeper_comes(home)
        kill(*sleepers(seconds))
        task = await (await bb.session("test").task(task.id)).wait(30)
        assert task.exit_code == 8


async def test_x9_an_older_keeper_does_not_wait_for_a_record_that_it_cannot_read(
    home: Path, next_format: Copy
) -> None:
    """It would hold the lock for ever."""
    assert next_format.cli("run", "--wait", "--", "true").returncode == 0

    told: set[int] = set()

    def nobody_is_left() -> bool:
        pid = keeper_of(home)
        if pid is not None and pid not in told:  # one that is just starting would die of it
            told.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return not keepers_of(home) and not guardians_of(home)

    wait_until(nobody_is_left)
    from tests.keeper.test_election import call_guardian

    call_guardian(home)
    wait_until(lambda: "newer Backburner" in (home / "keeper.log").read_text())
    wait_until(lambda: not keepers_of(home) and not guardians_of(home))


async def test_x9_a_stopped_older_keeper_is_named_and_nothing_is_changed(
    home: Path, older: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(succession, "PATIENCE_S", 0.5)
    seconds = unique_seconds()
    older.run("--id", "job", "--", f"sleep {seconds}")
    wait_until(lambda: processes_with(seconds))
    keeper = wait_for_keeper(home)
    os.kill(keeper, signal.SIGSTOP)
    wait_until(lambda: psutil.Process(keeper).status() == psutil.STATUS_STOPPED)
    try:
        with pytest.raises(
            KeeperUnreachable, match=rf"pid {keeper}, version 0\.0\.1\) does not leave"
        ):
            succession.take_office(Home(home))
        assert keeper_of(home) == keeper
    finally:
        os.kill(keeper, signal.SIGCONT)
    wait_until(lambda: not is_running(keeper))  # what it was asked for reaches it now
    async with Backburner.open(home) as bb:
        await (await bb.session("test").task("job")).stop(force=True)


def test_x9_a_program_that_keeps_a_home_itself_is_never_signalled(
    new_home: Callable[[], Path], older: Copy
) -> None:
    import subprocess
    import sys

    home = new_home()
    program = (
        "import sys; from pathlib import Path; from backburner.model.home import Home\n"
        "from backburner.runtime.election import KeeperLock\n"
        "lock = KeeperLock.acquire(Home(Path(sys.argv[1])), stays=True)\n"
        "print('kept', flush=True); sys.stdin.read()\n"
    )
    told: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", program, str(home)],
        env=older.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "kept\n"
        with pytest.raises(KeeperUnreachable, match="keeps this home inside a program"):
            succession.take_office(Home(home), will_stay=lambda: told.append("it stays"))
        assert told == ["it stays"], "whoever has its place stays, also if it dies in that moment"
        assert process.poll() is None
        process.communicate()
    lock = succession.take_office(Home(home))
    assert lock is not None
    lock.release()


async def test_x9_ten_newer_keepers_at_once_leave_one(home: Path, older: Copy) -> None:
    from tests.keeper.test_election import call_guardian

    seconds = unique_seconds()
    task_id = older.run("--", f"sleep {seconds}")
    wait_until(lambda: sleepers(seconds))
    for _ in range(10):
        call_guardian(home)
    wait_until(lambda: version_of_keeper(home) == ours().version)
    wait_until(lambda: one_keeper(home), message="more than one is left")
    async with Backburner.open(home) as bb:
        task = await bb.session("test").task(task_id)
        await task.stop(force=True)
        assert task.state is State.CANCELED
        assert (await kinds_of(task)).count(EventKind.STARTED) == 1


def test_a_killed_keeper_is_replaced_by_one_of_its_own_version(home: Path, older: Copy) -> None:
    older.run("--id", "job", "--", "sleep 3600")
    dead = kill_keeper(home)
    wait_for_keeper(home, other_than=dead)
    assert version_of_keeper(home) == "0.0.1"
    older.cli("stop", "--force", "job")
