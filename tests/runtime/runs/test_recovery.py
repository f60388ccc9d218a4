"""E11: a run whose application dies is taken up again where that is safe, else orphaned."""

import json
import os
import signal
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from backburner import Backburner, Context, ErrorKind, EventKind, State, Task
from backburner.model.ending import Ending
from backburner.model.home import Home
from backburner.runtime.runs.archive import put_files
from backburner.store.sqlite.writer import WriteLock
from backburner.work import handover
from tests.runtime.deliveries import files_with
from tests.runtime.runs import crawler
from tests.runtime.runs.programs import program
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow


@contextmanager
def application(home: Path, tool: str, folder: Path, **more: str) -> Generator[tuple[str, int]]:
    """The id of its run, and its pid; killed at the latest at the end."""
    arguments = json.dumps({"folder": str(folder), **more})
    with program("-m", "tests.runtime.runs.application", home, tool, arguments) as running:
        yield running.line(), running.pid


def begun(folder: Path) -> int:
    return len(list(folder.glob("began-*")))


async def test_e11_an_importable_run_is_taken_up_by_the_keeper(home: Path, tmp_path: Path) -> None:
    with application(home, "count_up", tmp_path) as (task_id, _):
        wait_until(lambda: begun(tmp_path) == 1)
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(task_id)
        await task.wait(60)
        assert (task.state, task.result, task.record.attempt) == (State.SUCCEEDED, 2, 2)
        kinds = [event.kind async for event in task.events(follow=False)]
        assert kinds.count(EventKind.REQUEUED) == 1
        assert (await task.output()).text == "[stdout] began 2\n"
        signals = [signal async for signal in bb.session("s").signals(follow=False)]
        assert [signal.record.kind for signal in signals] == ["completed"]
        assert begun(tmp_path) == 2
        first = Home(home).attempt(task_id, 1)
        assert Path(first.log).read_text() == "[stdout] began 1\n", "a fresh folder each"


async def test_e11_what_had_ended_leaves_nothing_to_start_it_with(
    home: Path, tmp_path: Path
) -> None:
    """Its files say so, and its application dies before the record does."""
    with application(home, "count_up", tmp_path) as (task_id, _):
        wait_until(lambda: begun(tmp_path) == 1)
        put_files(Home(home).attempt(task_id, 1), Ending.succeeded(result="well").document())
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(task_id)
        await task.wait(60)
        assert (task.state, task.result, task.record.attempt) == (State.SUCCEEDED, "well", 1)
    assert [piece for piece in handover.pieces(Home(home)) if piece.task == task_id] == []


async def test_e11_another_application_that_has_the_tool_takes_it_up(
    home: Path, tmp_path: Path
) -> None:
    with application(home, "closure", tmp_path) as (task_id, _):
        wait_until(lambda: begun(tmp_path) == 1)
    bb = Backburner.open(home)
    async with bb:
        task = await bb.session("s").task(task_id)
        await wait_until_async(lambda: _is_queued(task))

        @bb.tool(background=True, idempotent=True)
        async def closure(context: Context, folder: str) -> int:
            return await crawler.count_up(context, folder)

        await task.wait(60)
        assert (task.state, task.result, task.record.attempt) == (State.SUCCEEDED, 2, 2)


async def _is_queued(task: Task) -> bool:
    await task.refresh()
    return task.state is State.QUEUED


@pytest.mark.parametrize(
    ("tool", "more", "reason"),
    [
        ("only_once", {}, "neither idempotent nor readonly"),
        ("with_secret", {"api_key": "sesame"}, "secrets, which are not kept"),
    ],
)
async def test_e11_what_may_not_run_twice_is_orphaned_and_told(
    home: Path, tmp_path: Path, tool: str, more: dict[str, str], reason: str
) -> None:
    with application(home, tool, tmp_path, **more) as (task_id, _):
        wait_until(lambda: begun(tmp_path) == 1)
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(task_id)
        await task.wait(60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED
        assert "has died" in task.error.message
        assert reason in task.error.message
        signals = [signal async for signal in bb.session("s").signals(follow=False)]
        assert [signal.record.kind for signal in signals] == ["failed"]
        result = json.loads(Path(task.document()["paths"]["result"]).read_text())
        assert result["error"]["kind"] == "orphaned"
    assert begun(tmp_path) == 1
    assert files_with("sesame", home) == []


async def test_e11_three_attempts_are_the_most(home: Path, tmp_path: Path) -> None:
    """Each application takes it up and is killed."""
    with application(home, "closure", tmp_path) as (task_id, _):
        wait_until(lambda: begun(tmp_path) == 1)
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(task_id)
        for attempt in (2, 3):
            await wait_until_async(lambda: _is_queued(task))
            # Of its own: count_up does not wait from the second time on.
            with program("-c", _TAKER, home) as taker:
                assert taker.line() == "took it up"
                await task.refresh()
                assert (task.state, task.record.attempt) == (State.RUNNING, attempt)
        await task.wait(60)
        assert task.error is not None
        assert "attempt 3 of 3" in task.error.message


_TAKER = """
import asyncio, os, sys
from backburner import Backburner
bb = Backburner.open(sys.argv[1])
@bb.tool(background=True, idempotent=True)
async def closure(folder: str) -> int:
    os.write(1, b"took it up\\n")
    await asyncio.Event().wait()
async def main():
    async with bb:
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_e11_an_application_that_closes_leaves_its_runs_as_one_that_died(
    home: Path, tmp_path: Path
) -> None:
    bb = Backburner.open(home)
    bb.registry.add_module(crawler)
    async with bb:
        once = await bb.session("s").spawn("only_once", {"folder": str(tmp_path)})
        await wait_until_async(lambda: begun(tmp_path))
    async with Backburner.open(home) as bb:
        task = await bb.session("s").task(once.id)
        await task.wait(60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED
        assert "closed while it ran" in task.error.message
        assert await bb.store.workers() == []


async def test_x2_a_forked_child_does_not_keep_a_dead_application_alive(
    home: Path, tmp_path: Path
) -> None:
    """A lock that a child of a fork inherits would."""
    source = """
import asyncio, os, signal, sys
from backburner import Backburner
bb = Backburner.open(sys.argv[1])
@bb.tool(background=True)
async def waits() -> None:
    await asyncio.Event().wait()
async def main():
    async with bb:
        task = await bb.session("s").spawn("waits")
        if os.fork() == 0:
            print(task.id, os.getpid(), flush=True)
            signal.pause()
        await asyncio.Event().wait()
asyncio.run(main())
"""
    with program("-W", "ignore", "-c", source, home) as running:
        task_id, child = running.line().split()
        running.kill()
        try:
            async with Backburner.open(home) as bb:
                task = await bb.session("s").task(task_id)
                await task.wait(60)
                assert task.error is not None
                assert task.error.kind is ErrorKind.ORPHANED
        finally:
            os.kill(int(child), signal.SIGKILL)


async def test_e11_a_suspended_application_is_not_taken_for_dead(
    home: Path, tmp_path: Path
) -> None:
    with application(home, "count_up", tmp_path) as (task_id, pid):
        wait_until(lambda: begun(tmp_path) == 1)
        # Who is stopped while it has the lock of the writers would hold up everybody.
        with closing(WriteLock(Home(home).write_lock)) as gate, gate:
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        async with Backburner.open(home) as bb:
            task = await bb.session("s").task(task_id)
            # A keeper looks every second; a shell job that ends proves that it has looked.
            for _ in range(3):
                await (await bb.session("s").run("sleep 0.5")).wait(30)
            await task.refresh()
            assert (task.state, task.record.attempt) == (State.RUNNING, 1)
        os.kill(pid, signal.SIGCONT)
    assert begun(tmp_path) == 1
