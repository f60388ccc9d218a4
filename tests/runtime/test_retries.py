"""X9: further attempts after a failure: each anew, with back-off, told once at the end."""

import asyncio
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, EventKind, Session, State, Task
from backburner.work import handover
from backburner.work.process.condition import Ended, inspect
from tests.faults.homes import waiting_starts
from tests.faults.record import rows
from tests.faults.victims import (
    keeper_comes,
    kill,
    kill_all_of_ours,
    kill_keeper,
    nobody_keeps,
    processes_with,
    sleepers,
    unique_seconds,
)
from tests.waiting import pause_async, wait_until, wait_until_async

pytestmark = pytest.mark.slow

COUNT = 'echo "try $BACKBURNER_ATTEMPT"; echo x >>{0}/tries'


def tries(folder: Path) -> int:
    path = folder / "tries"
    return len(path.read_text().splitlines()) if path.exists() else 0


async def kinds(task: Task) -> list[EventKind]:
    return [event.kind async for event in task.events(follow=False)]


async def waits_for_its_time(task: Task) -> bool:
    record = (await task.refresh()).record
    return record.wait is not None and record.wait.not_before is not None


async def test_x9_it_is_tried_until_it_succeeds(shared_home: Path, tmp_path: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("succeeds")
        line = f"{COUNT.format(tmp_path)}; echo $SECRET; test $BACKBURNER_ATTEMPT = 3"
        task = await session.run(line, retries=5, env={"SECRET": "kept"})
        await task.wait(30)
        record = task.record
        assert (task.state, record.attempt, record.failures) == (State.SUCCEEDED, 3, 2)
        assert tries(tmp_path) == 3
        assert (await task.output()).text == "try 3\nkept\n"
        assert task.id not in waiting_starts(shared_home)
        started = [e.at async for e in task.events(follow=False) if e.kind is EventKind.STARTED]
        assert started[1] - started[0] >= 1e6
        assert started[2] - started[1] >= 2e6
        (told,) = await session.told()
        assert told.task == task.id
        for attempt in (1, 2, 3):
            assert (Path(bb.home.attempt(task.id, attempt).path) / "result.json").exists()


async def test_x9_the_last_failure_is_its_own_and_says_how_often(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("fails")
        task = await session.run(f"{COUNT.format(tmp_path)}; exit 4", retries=1)
        await task.wait(30)
        assert (task.state, task.exit_code, tries(tmp_path)) == (State.FAILED, 4, 2)
        assert task.error is not None
        assert task.error.message == "exit code 4 (tried 2 times)"
        assert task.id not in waiting_starts(shared_home)
        expected = [EventKind.CREATED, EventKind.STARTED, EventKind.FAILED_TRY]
        assert await kinds(task) == [*expected, EventKind.STARTED, EventKind.FINISHED]
        assert len(await session.told()) == 1
        again = await task.rerun()
        assert again.record.retries_left == 1
        await again.stop(force=True)


async def failed_once(task: Task) -> bool:
    return EventKind.FAILED_TRY in await kinds(task)


async def test_x9_what_a_failed_try_left_running_is_ended_before_the_next(
    shared_home: Path, tmp_path: Path
) -> None:
    seconds = unique_seconds()
    gate = f"test $BACKBURNER_ATTEMPT = 1 || until test -e {tmp_path}/go; do sleep 0.02; done"
    async with Backburner.open(shared_home) as bb:
        session = bb.session("left")
        task = await session.run(f"{gate}; setsid sleep {seconds} & exit 1", retries=1)
        await wait_until_async(lambda: failed_once(task))
        assert processes_with(seconds) == []
        (tmp_path / "go").touch()
        await task.wait(30)
        assert task.record.leftovers == 1, "of the last one it is left, as ever"
        await task.stop(force=True)


async def test_x9_a_timeout_and_a_kill_are_tried_again_and_a_start_that_cannot_be_is_not(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("which")
        late = await session.run(
            "test $BACKBURNER_ATTEMPT != 1 || sleep 99", max_runtime=3, retries=5
        )  # on a busy machine a further attempt may be too late as well
        killed = await session.run("test $BACKBURNER_ATTEMPT = 2 || kill -9 $$", retries=1)
        folder = tmp_path / "gone"
        folder.mkdir()
        with_folder = await session.run(
            "rmdir $PWD; exit 1", cwd=folder, retries=3
        )  # its second attempt has no folder
        for task in (late, killed):
            await task.wait(100)
            assert task.state is State.SUCCEEDED
        assert (late.record.attempt >= 2, killed.record.attempt) == (True, 2)
        await with_folder.wait(30)
        assert with_folder.error is not None
        assert with_folder.error.kind is ErrorKind.SPAWN
        assert with_folder.record.attempt == 2
        await wait_until_async(lambda: with_folder.id not in waiting_starts(shared_home))


async def test_x9_wait_waits_through_and_output_of_the_last_try_is_there_meanwhile(
    shared_home: Path, tmp_path: Path
) -> None:
    line = f"echo try $BACKBURNER_ATTEMPT; test -e {tmp_path}/go"
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("through").run(line, retries=9)
        waiting = asyncio.create_task((await bb.session("through").task(task.id)).wait(60))
        await wait_until_async(lambda: waits_for_its_time(task))  # for the first or a later one
        assert not waiting.done()
        failures = task.record.failures
        assert (await task.output()).text == f"try {failures}\n"
        assert task.document()["output"]["bytes"] == 6
        (tmp_path / "go").touch()
        last = (await waiting).record.attempt
        assert last > failures
        assert (await task.output()).text == f"try {last}\n"


async def test_x9_a_stop_cancels_it_while_it_waits_for_its_next_try(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("stop")
        task = await session.run(f"{COUNT.format(tmp_path)}; exit 1", retries=9)
        await wait_until_async(lambda: waits_for_its_time(task))
        await task.stop()
        assert (task.state, task.exit_code) == (State.CANCELED, None)
        assert task.id not in waiting_starts(shared_home)
        made = tries(tmp_path)
        assert (await task.output()).text == f"try {made}\n"
        await pause_async(1.5, because="its next try would have been made by now")
        assert tries(tmp_path) == made
        assert len(await session.told()) == 1


async def test_x9_between_its_tries_the_last_one_is_read_whatever_it_wrote_to(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("stderr").run(
            'echo "try $BACKBURNER_ATTEMPT" >&2; exit 1', retries=9, separate_stderr=True
        )

        async def has_failed_twice() -> bool:
            return (await task.refresh()).record.failures > 1 and await waits_for_its_time(task)

        await wait_until_async(has_failed_twice)
        await task.stop()
        assert (await task.output()).stderr_text == f"try {task.record.failures}\n"


async def test_x9_a_stop_while_it_runs_is_the_end(shared_home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("stop running").run(f"sleep {seconds}", retries=9)
        wait_until(lambda: sleepers(seconds))
        assert waiting_starts(shared_home) == [task.id]
        await task.stop(force=True)
        assert (task.state, task.record.attempt) == (State.CANCELED, 1)
        assert task.id not in waiting_starts(shared_home)


# Whoever dies


async def failing(session: Session, folder: Path, *, retries: int) -> Task:
    line = f"{COUNT.format(folder)}; echo $SECRET; sleep 0.3; exit 1"
    return await session.run(line, retries=retries, env={"SECRET": "kept"})


@pytest.mark.parametrize("who", ["keeper", "keeper and guardian"])
@pytest.mark.parametrize("when", ["it runs", "it waits"])
async def test_x9_a_killed_keeper_neither_loses_a_try_nor_makes_one_twice(
    home: Path, tmp_path: Path, who: str, when: str
) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        task = await failing(session, tmp_path, retries=2)
        if when == "it waits":
            await wait_until_async(lambda: waits_for_its_time(task))
        else:
            wait_until(lambda: tries(tmp_path))
        kill_keeper(home) if who == "keeper" else kill_all_of_ours(home)
        await task.wait(60)
        assert (task.state, task.exit_code, tries(tmp_path)) == (State.FAILED, 1, 3)
        assert task.record.attempt == 3
        assert (await task.output()).text == "try 3\nkept\n"
        assert waiting_starts(home) == []
        assert len(await session.told()) == 1


async def test_x9_kills_at_any_moment_change_no_count(home: Path, tmp_path: Path) -> None:
    """One after the other, for as long as the tries last."""
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        folders = [tmp_path / str(number) for number in range(4)]
        for folder in folders:
            folder.mkdir()
        tasks = [await failing(session, folder, retries=2) for folder in folders]

        async def all_ended() -> bool:
            return all([(await task.refresh()).state.terminal for task in tasks])

        life_s = 0.37
        while not await all_ended():
            keeper = await keeper_comes(home)
            await pause_async(life_s, because="each keeper is to get somewhere")
            kill(keeper)
            life_s *= 1.2  # further, on a machine on which it gets nowhere in that time
        for task, folder in zip(tasks, folders, strict=True):
            assert (task.state, task.record.failures, tries(folder)) == (State.FAILED, 2, 3)
            assert task.error is not None
            assert task.error.message.count("tried") == 1
        assert len(await session.told()) == len(tasks)
        await wait_until_async(lambda: waiting_starts(home) == [])


def discard_nothing(*_: object) -> None:
    """As whoever dies before it could."""


async def test_x9_the_environment_goes_also_when_the_stopper_dies_before_it_could(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run("exit 1", retries=9)
        await wait_until_async(lambda: waits_for_its_time(task))
        monkeypatch.setattr(handover, "discard", discard_nothing)
        await task.stop()
        monkeypatch.undo()
        await wait_until_async(lambda: waiting_starts(home) == [], message="the keeper left it")


async def test_x9_a_keeper_stays_for_what_waits(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_KEEPER_IDLE_S", "0")
    line = f"test $BACKBURNER_ATTEMPT = 2 && touch {tmp_path}/again"
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(line, retries=1)
    wait_until((tmp_path / "again").exists, message="nobody was there to try it again")
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.state is State.SUCCEEDED


async def test_x9_after_a_reboot_it_is_tried_again(home: Path, tmp_path: Path) -> None:
    """What ran when the machine went down is orphaned: a failure like others."""
    seconds = unique_seconds()
    line = f"{COUNT.format(tmp_path)}; test $BACKBURNER_ATTEMPT = 2 || sleep {seconds}"
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(line, retries=1)
        wait_until(lambda: sleepers(seconds))
        kill_all_of_ours(home)
    rows(home, "UPDATE task SET boot_id = 'another boot' WHERE boot_id IS NOT NULL")
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert (task.state, tries(tmp_path)) == (State.SUCCEEDED, 2)
        events = [event async for event in task.events(follow=False)]
        (failed,) = [event for event in events if event.kind is EventKind.FAILED_TRY]
        assert failed.data["error"]["kind"] == "orphaned"
    kill(*processes_with(seconds))


async def test_x9_a_stop_that_comes_between_two_tries_is_a_stop(home: Path, tmp_path: Path) -> None:
    """Whether the record knew of the failure already or not."""
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        gate = f"until test -e {tmp_path}/go; do sleep 0.02; done"
        task = await session.run(f"echo x >>{tmp_path}/tries; {gate}; exit 4", retries=3)
        wait_until(lambda: tries(tmp_path))
        kill_all_of_ours(home)
        with nobody_keeps(home):
            (tmp_path / "go").touch()
            folder = bb.home.attempt(task.id, 1)
            wait_until(lambda: isinstance(inspect(folder), Ended))
            stopping = asyncio.create_task((await session.task(task.id)).stop())
            await wait_until_async(lambda: was_asked_to_stop(task))
        await stopping
        await task.refresh()
        assert (task.state, task.exit_code, tries(tmp_path)) == (State.CANCELED, None, 1)
        await wait_until_async(lambda: waiting_starts(home) == [])


async def was_asked_to_stop(task: Task) -> bool:
    return (await task.refresh()).record.stop is not None
