"""A home on a file system that is mounted read-only (issue 2, part 8); `test_disk.py` runs this."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backburner import Backburner, State, StoreUnusable
from tests.faults.disks import Disk
from tests.faults.victims import let_keepers_leave


async def test_every_call_says_that_the_home_cannot_be_written_to(disk: Disk, home: Path) -> None:
    """A home that cannot be used is a clear error and no harm, whether it is new or not."""
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").run("echo kept")).wait(timeout=30)
    let_keepers_leave(home)

    disk.remount("ro")
    for place in (home, home / "new"):
        with pytest.raises(StoreUnusable, match=r"Read-only file system.*--home"):
            async with Backburner.open(place):
                pass
        check_clear(call("run", "--home", str(place), "--", "true"))
    listing = call("ls", "--home", str(home), "--session", "s", "--json")
    if listing.returncode == 0:  # where the index of the record is there, it can be read
        assert task.id in listing.stdout
    else:
        check_clear(listing)

    disk.remount("rw")
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        kept = await session.task(task.id)
        assert (kept.state, (await kept.output()).text) == (State.SUCCEEDED, "kept\n")
        assert (await (await session.run("exit 4")).wait(timeout=30)).exit_code == 4


def call(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """The program, as a person or a script calls it."""
    return subprocess.run(
        [sys.executable, "-m", "backburner.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )


def check_clear(run: "subprocess.CompletedProcess[str]") -> None:
    """It failed, with what is wrong and what to do about it."""
    assert (run.returncode, run.stdout) == (1, "")
    assert "cannot be" in run.stderr
    assert "hint: " in run.stderr
    assert "Traceback" not in run.stderr
    assert "internal error" not in run.stderr
