"""A job may start jobs of its own: the contract's `links.parent`."""

import shlex
import sys
from pathlib import Path

from backburner import Backburner, Session, State, Task
from tests.waiting import wait_until_async

RUN = f"{shlex.quote(sys.executable)} -m backburner.cli run"


async def test_a_job_that_runs_backburner_run_is_the_parent_of_what_it_starts(
    shared_home: Path,
) -> None:
    """In the same session and home; a task of its own, which its parent's stop leaves alone."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session("nested")
        outer = await session.run(f"{RUN} --title inner -- 'sleep 3600'; sleep 3600", title="outer")
        inner = await wait_until_async(lambda: titled(session, "inner"))
        assert outer.document()["links"]["parent"] is None
        assert inner.document()["links"]["parent"] == outer.id
        await wait_until_async(lambda: runs(inner))
        await outer.stop(force=True)
        assert outer.state is State.CANCELED
        assert (await inner.refresh()).state is State.RUNNING
        again = await inner.rerun()
        assert again.document()["links"]["parent"] == outer.id
        for task in (inner, again):
            await task.stop(force=True)


async def titled(session: Session, title: str) -> Task | None:
    """The task of this title, once it is there."""
    return next((task for task in await session.tasks() if task.record.title == title), None)


async def runs(task: Task) -> bool:
    """Whether it is under way."""
    return (await task.refresh()).state is State.RUNNING
