"""X10: machines are upgraded one after another; old and new programs share a record meanwhile."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.model.errors import StoreUnusable
from backburner.model.states import State
from backburner.store.postgres.migrations import migrations
from tests.keeper.editions import Copy, copy_package
from tests.nodes.workers import WorkerProcess
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]

NEXT = max(migrations()) + 1
_ADDS = "ALTER TABLE task ADD COLUMN mood TEXT;\nCREATE TABLE future (seq BIGINT PRIMARY KEY);\n"


def newer(folder: Path, *, oldest: int | None = None) -> Copy:
    """The next release; ``oldest`` is the oldest format whose programs it goes on with."""
    copy = copy_package(folder, "99.0")
    store = folder / "backburner/store/postgres"
    (store / f"sql/{NEXT:04d}_future.sql").write_text(_ADDS)
    if oldest is not None:
        module = store / "migrations.py"
        text, count = re.subn(r"(?m)^OLDEST = \d+$", f"OLDEST = {oldest}", module.read_text())
        assert count == 1
        module.write_text(text)
    return copy


async def test_x10_programs_of_two_releases_work_for_each_other(
    home: Path,
    new_home: Callable[[], Path],
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    next_release = await asyncio.to_thread(newer, tmp_path / "newer")
    go = tmp_path / "go"
    old = WorkerProcess(address, new_home(), "--queue", "default")
    try:
        async with Backburner.open(address) as bb:
            await bb.set_queue("new", 4)
            before = await bb.session("chat").run(
                f"touch {tmp_path}/began; while [ ! -e {go} ]; do sleep 0.1; done; echo before"
            )
            await wait_until_async((tmp_path / "began").exists)
            done = await asyncio.to_thread(next_release.cli, "db", "migrate", "--home", address)
            assert done.returncode == 0, done
            assert f"{NEXT:04d}_future" in done.stdout + done.stderr
            # The old worker carries out what the new program starts, …
            done = await asyncio.to_thread(
                next_release.cli, "run", "--home", address, "--wait", "echo from the new one"
            )
            assert (done.returncode, "from the new one" in done.stdout) == (0, True), done
            # … and the new worker what the old program does.
            monkeypatch.setenv("PYTHONPATH", str(next_release.folder))
            new = WorkerProcess(address, new_home(), "--queue", "new")
            monkeypatch.delenv("PYTHONPATH")
            try:
                task = await bb.session("chat").run(
                    "python3 -c 'import os; print(os.environ.get(\"PYTHONPATH\"))'", queue="new"
                )
                await task.wait(timeout=60)
                assert (await task.output()).text == f"{next_release.folder}\n"
            finally:
                await asyncio.to_thread(new.leave)
            go.touch()
            await before.wait(timeout=60)
            assert (before.state, before.record.attempt) == (State.SUCCEEDED, 1)
    finally:
        go.touch()
        await asyncio.to_thread(old.leave)


async def test_x10_a_worker_that_is_too_old_leaves_its_commands_to_the_next_on_its_machine(
    home: Path,
    new_home: Callable[[], Path],
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    too_new = await asyncio.to_thread(newer, tmp_path / "newer", oldest=NEXT)
    go, machine = tmp_path / "go", new_home()
    worker = WorkerProcess(address, machine, "--dead-after", "12")
    async with Backburner.open(address) as bb:
        task = await bb.session("test").run(
            f"touch {tmp_path}/began; while [ ! -e {go} ]; do sleep 0.1; done; echo done"
        )
        await wait_until_async((tmp_path / "began").exists)
        done = await asyncio.to_thread(too_new.cli, "db", "migrate", "--home", address)
        assert done.returncode == 0, done
        with pytest.raises(StoreUnusable, match="upgrade Backburner"):
            await bb.session("chat").run("true")
    await asyncio.to_thread(worker.process.wait, 60)
    assert worker.process.returncode == 1
    assert "start its worker with the same home" in worker.said()
    assert "Traceback" not in worker.said()
    monkeypatch.setenv("PYTHONPATH", f"{too_new.folder}{os.pathsep}")
    next_one = WorkerProcess(address, machine, "--dead-after", "12")
    try:
        go.touch()
        done = await asyncio.to_thread(
            too_new.cli, "wait", task.id, "--home", address, "--timeout", "60"
        )
        assert done.returncode == 0, (done, next_one.said())
        shown = await asyncio.to_thread(too_new.cli, "logs", task.id, "--home", address)
        assert shown.stdout == "done\n"
    finally:
        await asyncio.to_thread(next_one.leave)
