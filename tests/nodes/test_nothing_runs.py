"""E3, E11, X2: what the record has as begun in an application that lives, and does not run there;

and what an application has for its own, and another one carries out.
"""

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest

from backburner import Backburner, Session, State, StoreAway
from backburner.model.states import ErrorKind
from backburner.model.task import Task
from backburner.store.engine import Job
from backburner.store.postgres import reader, silence, writer
from backburner.store.postgres.node import NodeStore
from tests.postgres_server import Server
from tests.store.postgres.test_database import run
from tests.store.postgres.test_silence import commits_hang
from tests.waiting import pause_async, wait_until_async

pytestmark = [pytest.mark.slow]

SOON = "3"
"""Until a machine that is silent is taken for dead."""


def back_up(server: Server, into: Path) -> None:
    server.stop()
    subprocess.run(["cp", "-a", server.data, into], check=True)
    server.start()


def restore(server: Server, copy: Path) -> None:
    """As it was then. What another server had not heard of, when it takes the first one's place."""
    server.stop()
    shutil.rmtree(server.data)
    subprocess.run(["cp", "-a", copy, server.data], check=True)
    server.start()


async def test_e11_x2_a_record_that_has_not_heard_of_an_end_hears_of_it_again(
    home: Path, own_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", SOON)
    go = asyncio.Event()
    async with Backburner.open(own_server.create()) as bb:

        @bb.tool(background=True)
        async def hold(number: int) -> int:
            await go.wait()
            return number

        task = await bb.session("chat").spawn("hold", {"number": 7})
        await asyncio.to_thread(back_up, own_server, tmp_path / "copy")
        go.set()
        await task.wait(30)
        assert task.state is State.SUCCEEDED
        await asyncio.to_thread(restore, own_server, tmp_path / "copy")
        assert (await task.refresh()).state is State.RUNNING
        await task.wait(30)
        assert (task.state, task.result) == (State.SUCCEEDED, 7)


async def hung_start(session: Session, server: Server) -> str:
    """The id of a task whose start may have been written, as its caller was told."""
    for number in range(20):
        task_id = f"bg_hangs{number}"
        async with commits_hang(server):
            with pytest.raises(StoreAway) as told:
                await session.spawn("work", {"mark": "second"}, id=task_id)
            if "not known whether" in str(told.value):
                await pause_async(2 * float(SOON), because="who has noted that finds nothing")
                return task_id
        # Else something else was written at that moment, and hung before it.
    raise AssertionError("no start hung")


async def test_e3_x2_a_start_whose_commit_hung_takes_no_place_for_ever(
    home: Path, own_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at the record does not see it, and does not wait for it."""
    for kind in (silence.Connection, silence.AsyncConnection):
        monkeypatch.setattr(kind, "silence_s", 2.0)
    for module in (reader, writer):
        monkeypatch.setattr(module, "PATIENCE_S", 2.0)
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", SOON)
    ran: list[str] = []
    async with Backburner.open(own_server.create()) as bb:

        @bb.tool(background=True)
        async def work(mark: str) -> None:
            ran.append(mark)

        session = bb.session("chat")
        await (await session.spawn("work", {"mark": "first"})).wait(30)
        task = await session.task(await hung_start(session, own_server))
        await task.wait(30)
        assert (task.state, ran) == (State.FAILED, ["first"])
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED
        assert "nothing of it runs" in task.error.message
        assert [signal.task async for signal in session.signals(follow=False)].count(task.id) == 1


UNDONE = (
    "UPDATE task SET node = NULL WHERE id = '{}'",
    "UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL WHERE args ->> 'task' = '{}'",
)
"""What a crash of the database may leave of a job that was fetched, and of its take."""


async def test_x2_what_a_crash_of_the_database_gave_to_another_application_takes_no_place(
    home: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken here and had not begun: that need not be on disk."""
    monkeypatch.setenv("BACKBURNER_DEAD_AFTER_S", SOON)
    monkeypatch.setenv("BACKBURNER_TOOLS_PER_WORKER", "1")
    first_goes, second_goes = asyncio.Event(), asyncio.Event()
    ran: list[str] = []
    taken = asyncio.Event()
    take = NodeStore.take

    async def take_and_undo(store: NodeStore, job: Job) -> Task | None:
        task = await take(store, job)
        if not taken.is_set():
            for sql in UNDONE:
                await asyncio.to_thread(run, address, sql.format(job.task))
            taken.set()
        return task

    monkeypatch.setattr(NodeStore, "take", take_and_undo)
    async with Backburner.open(address) as asks, Backburner.open(address) as first:

        @first.tool(background=True)
        async def hold(mark: str) -> None:  # pyright: ignore[reportRedeclaration]
            ran.append(f"first {mark}")
            await first_goes.wait()

        await first.runs.begin()  # until then nobody else knows of the tool
        one = await first.session("chat").spawn("hold", {"mark": "one"})
        two = await asks.session("other").spawn("hold", {"mark": "two"})
        await taken.wait()
        async with Backburner.open(address) as second:

            @second.tool(background=True)
            async def hold(mark: str) -> None:
                ran.append(f"second {mark}")
                await second_goes.wait()

            await second.runs.begin()
            await wait_until_async(lambda: "second two" in ran)
            first_goes.set()
            await one.wait(30)
            three = await asks.session("other").spawn("hold", {"mark": "three"})
            await three.wait(60)
            assert ran == ["first one", "second two", "first three"]
            second_goes.set()
            await two.wait(30)
            assert two.state is State.SUCCEEDED
