"""X2: whatever a job puts into its folder, nobody waits for it: it is stopped, and others run."""

import asyncio
import os
from pathlib import Path

import pytest

from backburner import Backburner, State, Task
from backburner.model import clock
from backburner.model.home import AttemptFolder, Home
from backburner.model.task import Task as Record
from backburner.runtime import logwatch
from backburner.runtime.logwatch import WatchedLog
from backburner.runtime.output import add_mark, cursor_at
from backburner.store.sqlite.store import open_store
from backburner.work.log.bounds import LogBounds
from tests.faults.victims import is_running, keeper_comes, kill_keeper
from tests.store.conformance.making import running
from tests.waiting import wait_until_async

BESIDE = ["marks", "output.log.map", "output.log.lock", "output.log.head", "output.log.tail.1"]
MOVES = (
    '{"generation": 1, "state": "marking", "after": null, "token": "", "covered": "",'
    ' "layout": {"head": 0, "tail": 0, "tail_at": 0, "live_at": 0}}'
)


async def one_running(home: Home) -> Record:
    store = open_store(home.root, "boot")
    task = await running(store)
    await store.close()
    os.makedirs(home.attempt(task.id, 1).path)
    return task


async def test_a7_the_marks_of_a_job_say_how_far_it_was(tmp_path: Path) -> None:
    home = Home(tmp_path)
    task = await one_running(home)
    folder = home.attempt(task.id, 1)
    for at, cursor in ((10, "1.0"), (20, "1.7")):
        add_mark(folder, at, cursor)
    assert [cursor_at(home, task, at) for at in (9, 10, 19, 20, 21)] == [
        None, "1.0", "1.0", "1.7", "1.7"
    ]  # fmt: skip


async def test_x2_nobody_waits_for_the_other_end_of_marks(tmp_path: Path) -> None:
    home = Home(tmp_path)
    task = await one_running(home)
    folder = home.attempt(task.id, 1)
    os.mkfifo(folder.marks)
    with pytest.raises(OSError):  # noqa: PT011 - whichever it is, nothing is written
        add_mark(folder, clock.now(), "1.0")
    assert cursor_at(home, task, clock.now()) is None


@pytest.mark.parametrize("name", BESIDE)
def test_x2_a_look_at_a_log_waits_for_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """On the loop that all jobs of a keeper share."""
    monkeypatch.setattr(logwatch, "_MARK_S", 0.0)
    (tmp_path / "output.log").write_bytes(b"x" * 100_000)
    os.mkfifo(tmp_path / name)
    bounds = LogBounds(4096, 4096, 0)
    log = WatchedLog(AttemptFolder(str(tmp_path)), 1, bounds, separate_stderr=False)
    for final in (False, True):
        log.look(final=final)


async def prints(task: Task, text: str) -> None:
    async def seen() -> bool:
        return text in (await task.output()).text

    await wait_until_async(seen)


@pytest.mark.slow
async def test_x2_a_job_with_pipes_in_its_folder_is_stopped_and_others_run(home: Path) -> None:
    """Also for a keeper that comes later, and finds the job as it is."""
    pipes = f"cd $(dirname $BACKBURNER_REPORT); echo there; mkfifo {' '.join(BESIDE)}"
    async with Backburner.open(home) as bb:
        session = bb.session("pipes")
        hostile = [
            await session.run(f"{pipes}; while :; do echo on; sleep 0.05; done") for _ in range(2)
        ]
        for task in hostile:
            folder = Path(bb.home.attempt(task.id, 1).path)
            await wait_until_async((folder / BESIDE[-1]).exists)
        assert (await (await session.run("true")).wait(30)).state is State.SUCCEEDED
        await hostile[0].stop(force=True)
        assert hostile[0].state is State.CANCELED
        before = kill_keeper(home)
        await keeper_comes(home, other_than=before)
        assert (await (await session.run("true")).wait(30)).state is State.SUCCEEDED
        await hostile[1].stop(force=True)
        assert hostile[1].state is State.CANCELED


@pytest.mark.slow
async def test_x2_a_job_that_holds_the_lock_of_its_log_is_read_later_and_is_stopped(
    home: Path,
) -> None:
    """Nobody knows what the log is meanwhile; who asks is told so, and others go on."""
    held = (
        f"cd $(dirname $BACKBURNER_REPORT); echo there; exec 9>output.log.lock; flock 9;"
        f" echo '{MOVES}' >output.log.map; : >ready; while :; do echo on; sleep 0.05; done"
    )
    async with Backburner.open(home) as bb:
        session = bb.session("locks")
        task = await session.run(held)
        folder = Path(bb.home.attempt(task.id, 1).path)
        await wait_until_async((folder / "ready").exists)
        chunk = await asyncio.wait_for(task.output(), 60)
        assert "[the output cannot be read: " in chunk.text
        assert not chunk.complete
        assert task.document()["state"] == "running"
        before = kill_keeper(home)
        await keeper_comes(home, other_than=before)
        assert (await (await session.run("true")).wait(30)).state is State.SUCCEEDED
        await task.stop(force=True)
        assert task.state is State.CANCELED
        await prints(task, "there")
        assert (await task.output()).complete


@pytest.mark.slow
async def test_x2_a_job_that_blanks_what_says_that_it_runs_is_stopped(home: Path) -> None:
    """By a keeper that comes later, and finds it as if it were about to begin."""
    began = home.parent / "began"
    async with Backburner.open(home) as bb:
        task = await bb.session("blank").run(
            f"cd $(dirname $BACKBURNER_REPORT); : >wrapper; echo $$ >{began}; exec tail -f {began}"
        )
        await wait_until_async(lambda: began.exists() and began.read_text().strip())
        kill_keeper(home)
        await task.stop(force=True)
        assert task.state is State.CANCELED
        assert not is_running(int(began.read_text()))
