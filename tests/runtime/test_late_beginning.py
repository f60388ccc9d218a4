"""A4: a stop is heard by a command that its wrapper takes long to start, on a busy machine."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from backburner.model import clock
from backburner.model.home import AttemptFolder
from backburner.model.states import Kind, State
from backburner.model.task import EndedFor, Place, Task
from backburner.runtime.job import Job
from backburner.work.process import wrapper
from backburner.work.process.condition import Ended, inspect
from backburner.work.process.identity import boot_id
from backburner.work.process.mark import mark_for
from backburner.work.process.tree import Tree
from tests.faults.victims import unique_seconds
from tests.waiting import wait_until_async


class Nobody:
    """A chronicle that nobody reads."""

    def say(self, text: str) -> None: ...

    async def begin_ending(self, reason: EndedFor) -> None: ...


def held_job(folder: AttemptFolder, line: str, max_runtime_s: float | None = None) -> Job:
    """A job whose claim was made a minute ago, and whose wrapper has not got any further."""
    home = os.path.dirname(folder.path)
    environment = {"PATH": os.environ["PATH"]}
    launch = wrapper.Launch(["/bin/sh", "-c", line], home, environment, 0o022, 1024)
    mark = mark_for(home, "bg_held", 1)
    started = wrapper.start(folder, launch, mark=mark, cgroup=None)
    os.kill(started.pid, signal.SIGSTOP)
    started.go()
    place = Place(boot_id(), clock.boot_now() - 60 * clock.SECOND, started.pid)
    task = Task(
        1, "bg_held", "ada", "s", Kind.SHELL, "held", {}, State.RUNNING, 1, clock.now(),
        place=place, max_runtime_s=max_runtime_s,
    )  # fmt: skip
    tree = Tree(home, task.id, 1, None)
    return Job(task, folder, tree, Nobody(), pid=started.pid, ours=True)


@pytest.mark.slow
async def test_a4_a_command_that_begins_late_is_asked_to_end(tmp_path: Path) -> None:
    folder = AttemptFolder(str(tmp_path / "bg_held.1"))
    job = held_job(folder, f"exec sleep {unique_seconds()}")
    (pid,) = job.tree.members()
    ending = asyncio.create_task(job.end_tree(60))
    await wait_until_async(lambda: job.stop is not None)
    os.kill(pid, signal.SIGCONT)
    await asyncio.wait_for(ending, 100)
    # Nothing is written down where all was killed at the end of the grace.
    assert isinstance(inspect(folder), Ended)


def test_a4_a_wrapper_is_known_as_one_from_its_first_moment(tmp_path: Path) -> None:
    """One that was taken for the command was asked to end before it could hear that, and died."""
    known: list[bool] = []
    for number in range(30):
        folder = AttemptFolder(str(tmp_path / f"bg_new.{number}"))
        launch = wrapper.Launch(["true"], str(tmp_path), {"PATH": "/bin"}, 0o022, 1024)
        started = wrapper.start(folder, launch, mark=mark_for(str(tmp_path), "bg", 1), cgroup=None)
        known.append(wrapper.is_wrapper(started.pid))
        started.go()
        os.waitpid(started.pid, 0)
    assert all(known)


@pytest.mark.slow
async def test_a5_a_record_that_is_slow_takes_nothing_of_a_commands_time(tmp_path: Path) -> None:
    """A claim was begun a minute before it was on disk, and only then the command begins."""
    folder = AttemptFolder(str(tmp_path / "bg_held.1"))
    job = held_job(folder, "exit 3", max_runtime_s=50)
    (pid,) = job.tree.members()
    os.kill(pid, signal.SIGCONT)
    ending = await asyncio.wait_for(job.until_over(), 100)
    assert ending.exit_code == 3
