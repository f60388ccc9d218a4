"""X10: one address changed, and tasks run on other machines with the same promises."""

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backburner import Backburner
from backburner.model.errors import UsageError
from backburner.model.events import EventKind
from backburner.model.home import Home
from backburner.model.schedule import ScheduleState
from backburner.model.states import ErrorKind, State
from backburner.work.process import condition
from tests.nodes.conftest import NewWorker
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]


async def test_x10_a_command_runs_on_a_worker_and_its_output_is_read_here(
    shared: Backburner, new_worker: NewWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_worker()
    monkeypatch.setenv("NOT_FOR_OTHERS", "hunter2")
    session = shared.session("chat", owner="ada")
    task = await session.run(
        "echo here; echo ${GIVEN} ${NOT_FOR_OTHERS-nothing}; exit 3", env={"GIVEN": "this"}
    )
    await task.wait(timeout=60)
    assert (task.state, task.record.exit_code) == (State.FAILED, 3)
    assert set(task.document()["paths"].values()) == {None}, "there is nothing of it here yet"
    assert (await task.output()).text == "here\nthis nothing\n"
    assert all(Path(path).exists() for path in task.document()["paths"].values())
    (started,) = [e async for e in task.events(follow=False) if e.kind is EventKind.STARTED]
    assert started.data["machine"] == socket.gethostname()
    async for signal in session.signals():
        assert signal.task == task.id
        await signal.ack()
        break


async def test_x10_what_wrote_nothing_to_its_log_has_an_empty_one_here_too(
    shared: Backburner, new_worker: NewWorker
) -> None:
    new_worker()
    session = shared.session("chat")
    for command, stderr in (("echo only >&2", "only\n"), ("true", "")):
        task = await session.run(command, separate_stderr=True)
        await task.wait(timeout=60)
        output = await task.output()
        assert (output.text, output.stderr_text or "") == ("", stderr)
        assert Path(task.document()["paths"]["log"]).read_bytes() == b""


async def test_c4_a_python_function_runs_on_a_worker(
    shared: Backburner, new_worker: NewWorker
) -> None:
    new_worker()
    task = await shared.session("chat").call("html:escape", {"s": "<"})
    await task.wait(timeout=60)
    assert (task.state, task.result) == (State.SUCCEEDED, "&lt;")


async def test_e7_x2_a_stop_from_another_machine_ends_the_whole_tree(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    new_worker()
    began = _began(tmp_path)
    task = await shared.session("chat").run(f"(touch {began}; exec tail -f {began}) & wait")
    # The file, and no process: a wrapper has the command in its words before it may run it.
    await wait_until_async(began.exists)
    await task.stop()
    assert task.state is State.CANCELED
    assert not _runs(began)


async def test_x2_a_worker_that_comes_back_goes_on_with_what_the_last_one_left(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    worker = new_worker()
    task = await shared.session("chat").run(
        f"touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo done"
    )
    await wait_until_async((tmp_path / "began").exists)
    await asyncio.to_thread(worker.kill)
    worker.start()
    (tmp_path / "go").touch()
    await task.wait(timeout=60)
    assert (task.state, task.record.attempt) == (State.SUCCEEDED, 1)
    assert (await task.output()).text == "done\n"


async def test_x1_a_job_that_breaks_its_log_has_its_end_all_the_same(
    shared: Backburner, new_worker: NewWorker
) -> None:
    worker = new_worker()
    session = shared.session("chat")
    log = "$BACKBURNER_HOME/tasks/$BACKBURNER_TASK_ID.1/output.log"
    instead = ("mkdir {log}", "mkfifo {log}", "ln -s output.log {log}")
    tasks = [
        await session.run(
            f"echo hi >&2; rm {log}; {put.format(log=log)}; exit 3", separate_stderr=apart
        )
        for put in instead
        for apart in (False, True)
    ]
    for task in tasks:
        await task.wait(timeout=60)
        assert (task.state, task.record.exit_code) == (State.FAILED, 3)
        assert (await task.output()).complete
    assert "adopted anew" not in worker.said()


async def test_e11_what_a_dead_machine_had_is_orphaned_and_its_session_is_told(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    soon = ("--dead-after", "2")
    dying, living = new_worker("--queue", "one", *soon), new_worker("--queue", "two", *soon)
    await shared.set_queue("one", 5)
    began = _began(tmp_path)
    command = f"touch {began}; tail -f {began}"
    task = await shared.session("chat").run(command, queue="one")
    await wait_until_async(began.exists)
    await asyncio.to_thread(dying.kill)
    await task.wait(timeout=60)
    assert task.error is not None
    assert task.error.kind is ErrorKind.ORPHANED
    assert living.process.poll() is None
    # The machine comes back: what it has is over, and must not go on.
    dying.start()
    await wait_until_async(lambda: not _runs(began), timeout=60)


async def test_x2_so_must_what_it_has_left_behind_when_it_ended_meanwhile(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    """Its shell has gone by then, and knows nothing of the process that cleared its environment."""
    dying = new_worker("--queue", "one", "--dead-after", "2")
    new_worker("--queue", "two", "--dead-after", "2")
    await shared.set_queue("one", 5)
    began, may_end = _began(tmp_path), tmp_path / "it-may-end"
    leave = f"env -i setsid -f tail -f {began}"
    wait = f"until test -e {may_end}; do sleep 0.05; done"
    task = await shared.session("chat").run(f"touch {began}; {wait}; {leave}", queue="one")
    await wait_until_async(began.exists)
    await asyncio.to_thread(dying.kill)
    may_end.touch()
    folder = Home(dying.home).attempt(task.id, 1)
    await wait_until_async(lambda: isinstance(condition.inspect(folder), condition.Ended))
    await task.wait(timeout=60)
    assert task.error is not None
    assert task.error.kind is ErrorKind.ORPHANED
    assert _runs(began)
    dying.start()
    await wait_until_async(lambda: not _runs(began))


def _began(folder: Path) -> Path:
    """A file that only the command names: homes of workers lie in the same folder."""
    return folder / "a-file-of-the-command"


def _runs(file: Path) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(file).encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False


async def test_a_drained_worker_finishes_what_it_has_and_leaves_the_rest(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    worker = new_worker()
    session = shared.session("chat")
    first = await session.run(
        f"touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done"
    )
    await wait_until_async((tmp_path / "began").exists)
    worker.drain()
    await wait_until_async(lambda: "nothing more" in worker.said())
    second = await session.run("true")
    (tmp_path / "go").touch()
    await first.wait(timeout=60)
    await asyncio.to_thread(worker.process.wait, 60)
    assert worker.process.returncode == 0, worker.said()
    assert (await second.refresh()).state is State.QUEUED
    new_worker()
    await second.wait(timeout=60)
    assert second.state is State.SUCCEEDED


async def test_a_drained_worker_that_is_told_again_leaves_at_once_and_the_next_goes_on(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    worker = new_worker()
    task = await shared.session("chat").run(
        f"touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo done"
    )
    await wait_until_async((tmp_path / "began").exists)
    worker.drain()
    await wait_until_async(lambda: "nothing more" in worker.said())
    worker.drain()
    await asyncio.to_thread(worker.process.wait, 60)
    worker.start()
    (tmp_path / "go").touch()
    await task.wait(timeout=60)
    assert (task.state, task.record.attempt) == (State.SUCCEEDED, 1)


async def test_e9_a_schedule_fires_once_however_many_workers_there_are(
    shared: Backburner, new_worker: NewWorker
) -> None:
    for _ in range(2):
        new_worker()
    session = shared.session("chat")
    soon = datetime.now(UTC) + timedelta(seconds=1)
    schedule = await session.schedule(soon, "echo fired")
    await wait_until_async(session.tasks)
    (task,) = await session.tasks()
    await task.wait(timeout=60)
    assert (await task.output()).text == "fired\n"
    assert len(await session.tasks()) == 1
    assert (await schedule.refresh()).state is ScheduleState.DONE


async def test_x9_a_task_that_failed_is_tried_again_at_its_time(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    new_worker()
    again = f"if [ -e {tmp_path}/once ]; then echo well; else touch {tmp_path}/once; exit 1; fi"
    task = await shared.session("chat").run(again, retries=1)
    await task.wait(timeout=60)
    assert (task.state, task.record.attempt) == (State.SUCCEEDED, 2)
    assert (await task.output()).text == "well\n"


async def test_x1_what_belongs_to_one_machine_is_refused_on_a_record_of_many(
    shared: Backburner,
) -> None:
    for options in ({"command": "cat"}, {"desktop": True}):
        with pytest.raises(UsageError, match="belongs to one machine"):
            await shared.add_channel("x", **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="screen of one machine"):
        await shared.session("chat").run("true", notify=True)
