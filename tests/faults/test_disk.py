"""X3: full and read-only disks, and a record that another program has locked (issue 2, part 8)."""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from backburner import Backburner, State
from tests.faults.apart import run_apart
from tests.faults.homes import waiting_starts
from tests.faults.victims import kill_all_of_ours
from tests.waiting import wait_until_async

LOCKER = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(30000)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        "test_running_jobs_keep_their_exit_codes",
        "test_limits_hold",
        "test_a_flood_that_filled_the_disk_while_nobody_kept_is_cut",
    ],
)
def test_x3_on_a_full_disk(case: str) -> None:
    """Promise 4: a full disk ends nothing that runs, damages nothing, and passes."""
    run_apart(f"faults/on_a_full_disk.py::{case}")


@pytest.mark.slow
def test_x3_on_a_read_only_disk() -> None:
    """Issue 2, part 8: a home on a read-only file system."""
    run_apart("faults/on_a_read_only_disk.py")


@contextlib.contextmanager
def locked_by_another_program(home: Path) -> Generator[None]:
    """While this lasts, nobody else can write to the record."""
    command = [sys.executable, "-c", LOCKER, str(home / "backburner.db")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as locker:
        assert locker.stdout is not None
        assert locker.stdin is not None
        assert locker.stdout.readline() == b"locked\n"
        try:
            yield
        finally:
            locker.stdin.close()
            locker.wait()


@pytest.mark.slow
async def test_x1_a_record_that_is_locked_for_a_while_loses_nothing(
    home: Path, tmp_path: Path
) -> None:
    """X1, A3: jobs end while nobody can write that down, for longer than SQLite waits."""
    go = tmp_path / "go"
    line = f"echo up; until [ -e {go} ]; do sleep 0.01; done; exit"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        jobs = [await session.run(f"{line} {number}") for number in range(4)]
        await wait_until_async(lambda: all_printed(home, [job.id for job in jobs], "up\n"))
        with locked_by_another_program(home):
            go.touch()
            log = home / "keeper.log"
            await wait_until_async(lambda: "will try again" in log.read_text())
            # Reading goes on, and nothing was made up meanwhile.
            assert {task.state for task in await session.tasks()} == {State.RUNNING}
            start = asyncio.create_task(session.run("exit 5", id="meanwhile"))
        for number, job in enumerate(jobs):
            await job.wait(timeout=30)
            assert (job.exit_code, job.record.attempt) == (number, 1)
        after = await (await start).wait(timeout=30)
        assert after.exit_code == 5
        told = [signal.task for signal in await session.told()]
        assert sorted(told) == sorted([after.id, *(job.id for job in jobs)])
        assert waiting_starts(home) == []
    kill_all_of_ours(home)


def all_printed(home: Path, ids: list[str], text: str) -> bool:
    """Whether the log of each says this."""
    logs = [home / "tasks" / f"{name}.1" / "output.log" for name in ids]
    return all(log.exists() and log.read_text() == text for log in logs)
