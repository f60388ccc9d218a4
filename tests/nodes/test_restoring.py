"""X10: a back-up that is made while work runs, and workers that go on with what it holds."""

import asyncio
import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.app import Session
from backburner.model.errors import NotFound
from backburner.model.states import State
from tests import leftovers, postgres_server
from tests.nodes.workers import WorkerProcess
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]


def dumped(address: str, file: Path) -> None:
    program = postgres_server.program("pg_dump")
    subprocess.run([program, "--format=custom", f"--file={file}", address], check=True)


def restored(file: Path) -> str:
    """The address of a new database with what the back-up holds."""
    address = postgres_server.server().create_empty()
    program = postgres_server.program("pg_restore")
    subprocess.run(
        [program, "--exit-on-error", "--no-owner", f"--dbname={address}", file], check=True
    )
    return address


async def keep_starting(session: Session) -> None:
    while True:
        await (await session.run("true")).wait()


async def test_x10_what_a_back_up_holds_goes_on_and_all_of_it_is_accounted_for(
    home: Path, new_home: Callable[[], Path], address: str, tmp_path: Path
) -> None:
    machine = new_home()

    def waits(name: str) -> str:
        go = tmp_path / name
        return f"touch {go}-began; while [ ! -e {go} ]; do sleep 0.1; done; echo {name}"

    worker = WorkerProcess(address, machine)
    async with Backburner.open(address) as bb:
        session = bb.session("chat")
        await bb.set_queue("later", 1)
        ended = await session.run("echo long ago")
        await ended.wait(timeout=60)
        between, running = await session.run(waits("between")), await session.run(waits("running"))
        queued = await session.run("echo queued", queue="later")
        for name in ("between", "running"):
            await wait_until_async((tmp_path / f"{name}-began").exists)
        busy = asyncio.create_task(keep_starting(bb.session("busy")))
        await wait_until_async(lambda: _any_ended(bb.session("busy")))
        await asyncio.to_thread(dumped, address, tmp_path / "dump")
        busy.cancel()
        await asyncio.wait([busy])
        # What happens after it is in no back-up.
        (tmp_path / "between").touch()
        await between.wait(timeout=60)
        unknown = await session.run(waits("unknown"))
        await wait_until_async((tmp_path / "unknown-began").exists)
        await asyncio.to_thread(worker.kill)
    new = await asyncio.to_thread(restored, tmp_path / "dump")
    worker = WorkerProcess(new, machine, "--queue", "default", "--queue", "later")
    try:
        async with Backburner.open(new) as bb:
            session = bb.session("chat")
            for task in (between, queued):
                again = await session.task(task.id)
                await again.wait(timeout=60)
                assert (again.state, again.record.attempt) == (State.SUCCEEDED, 1)
            assert (await (await session.task(ended.id)).output()).text == "long ago\n"
            assert (await (await session.task(between.id)).output()).text == "between\n"
            again = await session.task(running.id)
            assert again.state is State.RUNNING
            (tmp_path / "running").touch()
            await again.wait(timeout=60)
            assert (again.state, again.record.attempt) == (State.SUCCEEDED, 1)
            assert (await again.output()).text == "running\n"
            for each in await bb.session("busy").tasks():
                await each.wait(timeout=60)
            # Nobody knows of it any more, so it must not go on.
            with pytest.raises(NotFound):
                await session.task(unknown.id)
            await wait_until_async(lambda: not _runs(machine, "unknown"), timeout=60)
    finally:
        worker.leave()


async def _any_ended(session: Session) -> bool:
    return any(task.state.terminal for task in await session.tasks())


def _runs(machine: Path, name: str) -> bool:
    with contextlib.suppress(OSError):
        return any(name in str(each) for each in leftovers.processes_of(machine))
    return False
