"""Starting: durable, idempotent by id, limited, seen by nobody else (E3, E12, promises 1, 2)."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from backburner import (
    Ambiguous,
    Backburner,
    Conflict,
    LimitReached,
    NotFound,
    Session,
    State,
    Task,
    UsageError,
)
from backburner.store.protocol import Scope
from tests.conftest import REPOSITORY
from tests.faults.homes import waiting_starts
from tests.faults.victims import nobody_keeps

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

STARTER = """
import asyncio, sys
from backburner import Backburner, BackburnerError
async def main(home, session, line, count, *ids):
    async with Backburner.open(home) as bb:
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(count)):
            try:
                task = await bb.session(session).run(line, id=ids[number] if ids else None)
                print(task.id, flush=True)
            except BackburnerError as error:
                print(error.code, flush=True)
asyncio.run(main(*sys.argv[1:]))
"""


def started_by_processes(number: int, *arguments: str) -> list[str]:
    """Let several processes start tasks at the same time; every answer that they got."""
    command = [sys.executable, "-c", STARTER, *arguments]
    processes = [
        subprocess.Popen(
            command, cwd=REPOSITORY, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(number)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers: list[str] = []
    for process in processes:
        said, _ = process.communicate()
        assert process.returncode == 0
        answers += said.split()
    return answers


# Idempotent by id


async def test_e12_the_same_id_is_the_same_task_and_runs_once(
    shared_home: Path, tmp_path: Path
) -> None:
    line = f"echo ran >>{tmp_path}/ran; exit 3"
    async with Backburner.open(shared_home) as bb:
        session = bb.session("idempotent")
        first = await session.run(line, id="build-1")
        second = await session.run(line, id="build-1")
        assert first.id == second.id == "build-1"
        await first.wait(30)
        third = await session.run(line, id="build-1")
        assert third.record == first.record
        assert third.exit_code == 3
        assert (tmp_path / "ran").read_text() == "ran\n"


async def test_e12_also_when_many_start_it_at_once(shared_home: Path, tmp_path: Path) -> None:
    line = f"echo ran >>{tmp_path}/ran"
    async with Backburner.open(shared_home) as bb:
        session = bb.session("at once")
        tasks = await asyncio.gather(*(session.run(line, id="once") for _ in range(40)))
        assert {task.record.seq for task in tasks} == {tasks[0].record.seq}
        await tasks[0].wait(30)
        assert (tmp_path / "ran").read_text() == "ran\n"
        assert "once" not in waiting_starts(shared_home)


@pytest.mark.slow
async def test_e12_also_when_several_processes_start_it_at_once(
    shared_home: Path, tmp_path: Path
) -> None:
    ids = [f"shared-{number}" for number in range(20)]
    line = f"echo $BACKBURNER_TASK_ID >>{tmp_path}/ran"
    answers = await asyncio.to_thread(
        started_by_processes, 4, str(shared_home), "several", line, "20", *ids
    )
    assert sorted(answers) == sorted(ids * 4)
    async with Backburner.open(shared_home) as bb:
        for task_id in ids:
            task = await (await bb.session("several").task(task_id)).wait(30)
            assert task.state is State.SUCCEEDED
    assert sorted((tmp_path / "ran").read_text().split()) == sorted(ids)
    assert not set(ids) & set(waiting_starts(shared_home))


async def test_e12_the_id_of_something_else_is_a_conflict_and_runs_nothing(
    home: Path, tmp_path: Path
) -> None:
    """Nor does it change what the task that is there will run, with which environment."""
    async with Backburner.open(home) as bb:
        with nobody_keeps(home):
            task = await bb.session("s").run(f"echo right >{tmp_path}/ran", id="taken")
            wrong = f"echo wrong >{tmp_path}/ran"
            for session in (bb.session("s"), bb.session("t"), bb.session("s", owner="bob")):
                with pytest.raises(Conflict) as refusal:
                    await session.run(wrong, id="taken")
                assert "right" not in str(refusal.value)
        await (await bb.session("s").run("true")).wait(30)
        await task.wait(30)
        assert (tmp_path / "ran").read_text() == "right\n"
        assert waiting_starts(home) == []


@pytest.mark.parametrize("wrong", ["", ".", "../x", "a b", "-x", "_x", "é", "x" * 65, "a/b", "a\n"])
async def test_e12_an_id_is_a_plain_word(shared_home: Path, wrong: str) -> None:
    async with Backburner.open(shared_home) as bb:
        with pytest.raises(UsageError):
            await bb.session("s").run("true", id=wrong)


@pytest.mark.parametrize("command", ["", "   ", [], [""], "a\0b", ["a", "b\0"]])
async def test_a_command_that_is_none_is_refused(
    shared_home: Path, command: str | list[str]
) -> None:
    async with Backburner.open(shared_home) as bb:
        with pytest.raises(UsageError):
            await bb.session("s").run(command)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), 1e308])
async def test_a_limit_of_no_time_or_of_all_time_is_refused(
    shared_home: Path, limit: float
) -> None:
    async with Backburner.open(shared_home) as bb:
        with pytest.raises(UsageError):
            await bb.session("s").run("true", max_runtime=limit)


# Limits


@pytest.mark.slow
async def test_e3_a_session_has_64_places_and_an_ended_task_frees_one(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("full")
        with nobody_keeps(home):
            tasks = [await session.run("true") for _ in range(64)]
            for _ in range(2):
                with pytest.raises(LimitReached, match="64"):
                    await session.run("true")
            await bb.session("another").run("true")
            await bb.session("full", owner="bob").run("true")
            await tasks[7].stop()
            await session.run("true")
            with pytest.raises(LimitReached):
                await session.run("true")
        assert len(await session.tasks(limit=1000)) == 65
        await bb.session("another").run("true")  # calls the keeper
        for task in tasks:
            await task.wait(60)
        await (await session.run("true")).wait(30)


@pytest.mark.slow
async def test_e3_the_places_are_counted_across_processes(home: Path) -> None:
    async with Backburner.open(home) as bb:
        with nobody_keeps(home):
            await bb.session("warm up").run("true")  # the processes below find a home
            answers = await asyncio.to_thread(
                started_by_processes, 4, str(home), "crowd", "true", "20"
            )
        assert answers.count("limit") == 16
        assert len({answer for answer in answers if answer != "limit"}) == 64
        for task in await bb.session("crowd").tasks(limit=100):
            await task.stop()


# Nobody else's


@pytest.fixture
def strangers() -> list[tuple[str, str]]:
    return [("other", "ada"), ("mine", "bob"), ("other", "bob")]


async def test_promise_2_a_task_does_not_exist_for_anyone_else(
    shared_home: Path, strangers: list[tuple[str, str]]
) -> None:
    async with Backburner.open(shared_home) as bb:
        mine = bb.session("mine", owner="ada")
        task = await mine.run("echo secret-output; sleep 3600", title="secret-title")
        assert (await mine.task(task.id)).id == task.id
        assert (await mine.task(task.id[:8])).id == task.id
        for name, owner in strangers:
            session = bb.session(name, owner=owner)
            assert await session.tasks() == []
            assert await session.told() == []
            for reference in (task.id, task.id[:8], "bg_"):
                with pytest.raises(NotFound) as refusal:
                    await session.task(reference)
                assert "secret" not in str(refusal.value)
            for attempt in attempts(bb, session, task):
                with pytest.raises(NotFound) as refusal:
                    await attempt
                assert "secret" not in str(refusal.value)
        assert not (await task.refresh()).state.terminal
        await task.stop(force=True)


def attempts(bb: Backburner, session: Session, task: Task):  # type: ignore[no-untyped-def]
    """Everything that can be tried with the id of a task, in the scope of a session."""

    async def events(scope: Scope) -> None:
        async for _ in bb.tasks.events(task.id, scope, follow=False):
            pass

    return [
        bb.tasks.get(task.id, session.scope),
        bb.tasks.wait(task.id, session.scope, 5),
        bb.tasks.stop(task.id, session.scope),
        events(session.scope),
    ]


async def test_a_prefix_that_fits_several_lists_those_of_the_session_only(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        mine, other = bb.session("prefix"), bb.session("prefix of others")
        for number in range(3):
            await mine.run("true", id=f"job-m{number}")
            await other.run("true", id=f"job-x{number}")
        with pytest.raises(Ambiguous) as refusal:
            await mine.task("job-")
        assert sorted(refusal.value.candidates) == ["job-m0", "job-m1", "job-m2"]
        assert (await mine.task("job-m1")).id == "job-m1"
        with pytest.raises(NotFound):
            await mine.task("job-x")


async def test_a_session_and_an_owner_need_names(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        with pytest.raises(UsageError):
            bb.session("")
        with pytest.raises(UsageError):
            bb.session("s", owner="")


# Again


async def test_rerun_starts_the_same_anew(shared_home: Path, tmp_path: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("again")
        line = f"echo $WORD >>{tmp_path}/ran; pwd; exit 4"
        first = await session.run(
            line, cwd=tmp_path, env={"WORD": "w"}, title="twice", max_runtime=77
        )
        await first.wait(30)
        second = await first.rerun()
        assert second.id != first.id
        await second.wait(30)
        assert (second.exit_code, second.record.title, second.record.max_runtime_s) == (
            4,
            "twice",
            77,
        )
        assert second.record.spec == first.record.spec
        assert (await second.output()).text == f"{tmp_path}\n"
        assert (tmp_path / "ran").read_text() == "w\nw\n"
        words = await (await session.run(["printf", "%s|", "a b", "*"])).wait(30)
        again = await (await words.rerun()).wait(30)
        assert (await again.output()).text == "a b|*|"


async def test_d9_rerun_without_a_secret_that_was_not_kept_is_refused(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("secret")
        task = await session.run("echo ${#API_KEY}", env={"API_KEY": "hush", "PLAIN": "p"})
        await task.wait(30)
        assert (await task.output()).text == "4\n"
        assert "hush" not in repr(task.record)
        with pytest.raises(UsageError, match="API_KEY"):
            await task.rerun()
        assert len(await session.tasks()) == 1
