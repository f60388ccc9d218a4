"""C3: stopping Python work: politely, and so that it really ends."""

import os
import signal
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, State, Task
from tests.faults.victims import children_of, is_running
from tests.waiting import wait_until

FUNCTIONS = "tests.work.child.functions"

pytestmark = pytest.mark.slow


async def running(bb: Backburner, name: str, file: Path) -> Task:
    """A call of a function that says that it has begun by making the file."""
    task = await bb.session("s").call(f"{FUNCTIONS}:{name}", {"file": str(file)})
    wait_until(file.exists)
    return await task.refresh()


def child_of(task: Task) -> int:
    """The process that the function runs in."""
    assert task.record.pid is not None
    (child,) = children_of(task.record.pid)
    return child


async def test_c3_force_ends_a_loop_that_never_yields(shared_home: Path, tmp_path: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await running(bb, "spins", tmp_path / "spins")
        child = child_of(task)
        await task.stop(force=True)
        assert (task.state, task.error, task.exit_code) == (State.CANCELED, None, None)
        assert not is_running(child)


async def test_c3_a_child_that_ignores_signals_ends_after_the_grace(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await running(bb, "spins", tmp_path / "deaf")
        child = child_of(task)
        await task.stop(grace=0.2)
        assert task.state is State.CANCELED
        assert not is_running(child)


async def test_c3_a_polite_stop_ends_a_function_that_does_nothing_about_it(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await running(bb, "sleeps", tmp_path / "sleeps")
        await task.stop(grace=60)
        assert task.state is State.CANCELED
        again = await task.stop()
        assert again.state is State.CANCELED, "a stopped task stays stopped"


async def test_c3_one_that_has_ended_keeps_its_own_ending(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").call(f"{FUNCTIONS}:add", {"a": 1, "b": 1})
        await task.wait(60)
        await task.stop(force=True)
        assert (task.state, task.result) == (State.SUCCEEDED, 2)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_c4_a_child_that_is_killed_from_outside_was_killed(
    shared_home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await running(bb, "sleeps", tmp_path / f"sleeps-{number}")
        os.kill(child_of(task), number)
        await task.wait(60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.KILLED
