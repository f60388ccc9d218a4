"""Waiting without polling: for the end of a task, for its output, for its events (A7, E10)."""

import asyncio
from pathlib import Path

import pytest

from backburner import Backburner, EventKind, Session, State, StoreError, Task, TimeIsUp, UsageError
from tests.faults.victims import unique_seconds
from tests.waiting import pause_async, wait_until_async


async def said(task: Task, text: str) -> None:
    """Wait until the job has written this."""

    async def seen() -> bool:
        return text in (await task.output()).text

    await wait_until_async(seen)


# The end


@pytest.mark.slow
async def test_who_waits_does_not_read_while_nothing_happens(
    shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("reads").run("sleep 2.6")
        await wait_until_async(lambda: is_running(task))
        reads = 0
        get = bb.store.get

        async def counted(*arguments: object) -> object:
            nonlocal reads
            reads += 1
            return await get(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(bb.store, "get", counted)
        scope = bb.session("reads").scope
        waits = [bb.tasks.wait(task.id, scope, 30) for _ in range(3)]
        records = await asyncio.gather(*waits)
        assert all(record.state is State.SUCCEEDED for record in records)
        assert reads <= 3 * 3  # at the beginning, at the end, and one to spare


async def is_running(task: Task) -> bool:
    return (await task.refresh()).state is State.RUNNING


@pytest.mark.slow
@pytest.mark.usefixtures("nobody_looks")
async def test_the_end_is_heard_of_when_it_happens_and_not_at_the_next_look(
    shared_home: Path,
) -> None:
    """The keeper, another process, writes the end, and tells this one."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session("latency")
        for number in range(20):
            task = await session.run(f"sleep 0.0{number % 10}")
            assert (await task.wait(30)).state is State.SUCCEEDED


async def test_a_hundred_that_wait_for_one_are_all_woken(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("many").run("sleep 0.3; exit 5")
        other = await bb.session("many").task(task.id)
        waits = [task.wait(30), other.wait(30)]
        waits += [(await bb.session("many").task(task.id)).wait(30) for _ in range(98)]
        assert {each.exit_code for each in await asyncio.gather(*waits)} == {5}


async def test_a_wait_that_runs_out_says_so_and_the_task_goes_on(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(f"sleep {unique_seconds()}")
        with pytest.raises(TimeIsUp, match=r"0\.2 s"):
            await task.wait(0.2)
        assert (await task.refresh()).state in (State.QUEUED, State.RUNNING)
        with pytest.raises(TimeIsUp):
            await task.wait(0)
        await task.stop(force=True)
        assert (await task.wait(0)).state is State.CANCELED  # it has ended: no time is needed


async def test_a_wait_that_is_given_up_leaves_nothing_behind(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(f"sleep {unique_seconds()}")
        waiting = asyncio.create_task(task.wait())
        await pause_async(0.05, because="it is to be waiting by then")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await task.refresh()).state in (State.QUEUED, State.RUNNING)
        await task.stop(force=True)


async def test_who_waits_when_the_home_is_closed_is_not_left_hanging(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(f"sleep {unique_seconds()}")
        waiting: list[asyncio.Task[object]] = [
            asyncio.create_task(wait_for(task)),
            asyncio.create_task(next_event(task)),
            asyncio.create_task(next_signal(bb.session("nothing is told here"))),
        ]
        await pause_async(0.05, because="they are to be waiting by then")
    await asyncio.wait(waiting, timeout=30)
    for each in waiting:
        with pytest.raises(StoreError):
            each.result()
    async with Backburner.open(shared_home) as bb:
        await (await bb.session("s").task(task.id)).stop(force=True)


async def wait_for(task: Task) -> object:
    return await task.wait()


async def next_event(task: Task) -> object:
    return await anext(task.events(after=1000))


async def next_signal(session: Session) -> object:
    return await anext(session.signals())


# Output


async def test_a7_output_is_read_piece_by_piece_while_it_runs(
    shared_home: Path, tmp_path: Path
) -> None:
    """Only what is new each time; nothing twice, nothing lost."""
    line = (
        f"for i in 1 2 3; do echo piece $i; until [ -e {tmp_path}/$i ]; do sleep 0.01; done; done"
    )
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(line)
        cursor = None
        for number in (1, 2, 3):
            await said(task, f"piece {number}\n")
            chunk = await task.output(since=cursor)
            assert chunk.text == f"piece {number}\n"
            assert not chunk.complete
            cursor = chunk.cursor
            assert (await task.output(since=cursor)).text == ""
            (tmp_path / str(number)).touch()
        await task.wait(30)
        chunk = await task.output(since=cursor)
        assert (chunk.text, chunk.complete) == ("", True)
        whole = await task.output()
        assert whole.text == "piece 1\npiece 2\npiece 3\n"
        assert whole.cursor == cursor == task.document()["output"]["cursor"]


async def test_a7_a_reader_that_follows_a_fast_writer_sees_every_line_once(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run("for i in $(seq 3000); do echo $i; done")
        text, cursor, complete = "", None, False
        while not complete:
            chunk = await task.output(since=cursor, max_chars=None, raw=True)
            text, cursor, complete = text + chunk.text, chunk.cursor, chunk.complete
            await pause_async(0.002, because="the writer is to be somewhere else at each read")
        assert text.split() == [str(number) for number in range(1, 3001)]


async def test_a7_long_output_is_head_and_tail_with_a_note(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await (await bb.session("s").run("seq 100000")).wait(30)
        chunk = await task.output(max_chars=2000)
        assert len(chunk.text) <= 2000
        assert chunk.text.startswith("1\n2\n3\n")
        assert chunk.text.endswith("99999\n100000\n")
        middle = chunk.text[300:-300]
        assert any(not line.strip().isdigit() for line in middle.splitlines() if line.strip())


async def test_a7_a_cursor_that_is_none_is_refused(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await (await bb.session("s").run("echo x")).wait(30)
        for wrong in ("nonsense", "1.x", "-1.5", "7.0"):
            with pytest.raises(UsageError):
                await task.output(since=wrong)
        with pytest.raises(UsageError):
            await task.output(grep="(")


# Events


async def test_e10_events_come_as_they_happen_and_end_with_the_task(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run("sleep 0.3")
        seen = [event async for event in task.events()]
        assert [event.kind for event in seen] == [
            EventKind.CREATED,
            EventKind.STARTED,
            EventKind.FINISHED,
        ]
        assert [event.number for event in seen] == [1, 2, 3]
        assert seen[0].at <= seen[1].at <= seen[2].at
        assert seen[-1].data["exit_code"] == 0
        again = [event.number async for event in task.events(after=1)]
        assert again == [2, 3]
        assert [event async for event in task.events(after=3)] == []


async def test_e10_a_stop_is_part_of_the_story(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(f"sleep {unique_seconds()}")
        await wait_until_async(lambda: is_running(task))
        await task.stop(grace=3)
        kinds = [event.kind async for event in task.events()]
        assert kinds[:2] == [EventKind.CREATED, EventKind.STARTED]
        assert EventKind.STOP_REQUESTED in kinds
        assert kinds[-1] is EventKind.FINISHED
