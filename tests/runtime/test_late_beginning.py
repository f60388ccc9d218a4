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


def held_job(folder: AttemptFolder, line: str) -> Job:
    """A job that was started a minute ago, and whose wrapper has not got any further."""
    home = os.path.dirname(folder.path)
    environment = {"PATH": os.environ["PATH"]}
    launch = wrapper.Launch(["/bin/sh", "-c", line], home, environment, 0o022, 1024)
    mark = mark_for(home, "bg_held", 1)
    started = wrapper.start(folder, launch, mark=mark, cgroup=None)
    os.kill(started.pid, signal.SIGSTOP)
    started.go()
    place = Place(boot_id(), clock.boot_now() - 60 * clock.SECOND, started.pid)
    task = Task(
        1, "bg_held", "ada", "s", Kind.SHELL, "held", {}, State.RUNNING, 1, clock.now(), place=place
    )
    tree = Tree(home, task.id, mark, None)
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
