"""X9: a task that starts after others, and what happens when one of those does not succeed."""

from pathlib import Path

import pytest

from backburner import Ambiguous, Backburner, ErrorKind, NotFound, Session, State, Task, UsageError
from tests.faults.homes import waiting_starts
from tests.faults.victims import kill_all_of_ours, kill_keeper, nobody_keeps
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

ENDS = {"exit 3": "failed: exit code 3", "kill -9 $$": "was killed: SIGKILL from outside"}


def held(folder: Path, line: str = "true") -> str:
    """A job that goes on until the file `go` is there."""
    return f"until test -e {folder}/go; do sleep 0.02; done; {line}"


async def waits(task: Task) -> bool:
    return (await task.refresh()).record.wait is not None


def assert_in_vain(task: Task, other: Task, how: str) -> None:
    assert (task.state, task.record.started_at) == (State.FAILED, None)
    assert task.error is not None
    assert task.error.kind is ErrorKind.SPAWN
    assert other.id in task.error.message
    assert how in task.error.message


async def test_x9_it_starts_when_all_of_them_have_succeeded(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("all")
        first = await session.run(held(tmp_path, f"echo first >>{tmp_path}/order"))
        second = await session.run("true")
        third = await session.run(f"echo third >>{tmp_path}/order", after=[first.id, second.id])
        await wait_until_async(lambda: waits(third))
        await second.wait(30)
        assert (await third.refresh()).state is State.QUEUED
        assert third.record.wait is not None
        assert third.record.wait.after == (first.id,)
        (tmp_path / "go").touch()
        await third.wait(30)
        assert third.state is State.SUCCEEDED
        assert (tmp_path / "order").read_text() == "first\nthird\n"


@pytest.mark.parametrize(("line", "how"), ENDS.items())
@pytest.mark.parametrize("when", ["it runs", "it has ended"])
async def test_x9_it_fails_when_one_does_not_succeed_and_says_which(
    shared_home: Path, tmp_path: Path, line: str, how: str, when: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(f"{line} {when}")
        other = await session.run(held(tmp_path, line))
        if when == "it has ended":
            (tmp_path / "go").touch()
            await other.wait(30)
        task = await session.run(f"touch {tmp_path}/ran", after=other.id)
        anyway = await session.run("echo after", after=other.id, after_failure=True)
        (tmp_path / "go").touch()
        await task.wait(30)
        assert_in_vain(task, other, how)
        await anyway.wait(30)
        assert (anyway.state, (await anyway.output()).text) == (State.SUCCEEDED, "after\n")
        assert not (tmp_path / "ran").exists()
        told = [signal.text for signal in await session.told() if signal.task == task.id]
        assert len(told) == 1
        assert how in told[0]


async def test_x9_what_was_stopped_did_not_succeed(shared_home: Path) -> None:
    """And so on along the line: each says which one it waited for."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session("stopped")
        first = await session.run("sleep 3600")
        second = await session.run("true", after=first.id)
        third = await session.run("true", after=second.id)
        await first.stop(force=True)
        await third.wait(30)
        await second.refresh()
        assert_in_vain(second, first, "was stopped")
        assert_in_vain(third, second, "failed to start")
        await wait_until_async(lambda: waiting_starts(shared_home) == [])


async def test_x9_it_fails_at_once_though_others_still_run(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("at once")
        long = await session.run("sleep 3600")
        failing = await session.run("sleep 0.1; exit 5")
        task = await session.run("true", after=[long.id, failing.id])
        await task.wait(30)
        assert_in_vain(task, failing, "exit code 5")
        assert (await long.refresh()).state is State.RUNNING
        await long.stop(force=True)


async def test_x9_one_that_waits_can_be_stopped_and_never_runs(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("stop it")
        first = await session.run(held(tmp_path))
        second = await session.run(f"touch {tmp_path}/ran", after=first.id)
        await wait_until_async(lambda: waits(second))
        await second.stop()
        assert second.state is State.CANCELED
        assert second.id not in waiting_starts(shared_home)
        (tmp_path / "go").touch()
        await first.wait(30)
        assert not (tmp_path / "ran").exists()


async def test_x9_it_waits_also_while_keepers_die(home: Path, tmp_path: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        first = await session.run(held(tmp_path))
        second = await session.run("echo $SECRET", after=first.id, env={"SECRET": "kept"})
        kill_keeper(home)
        (tmp_path / "go").touch()
        await second.wait(30)
        assert (await second.output()).text == "kept\n"
        assert waiting_starts(home) == []


async def test_x9_prefixes_do_and_strangers_do_not(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("prefix")
        first = await (await session.run("true", id="build-one")).wait(30)
        await session.run("true", id="build-two")
        task = await session.run("true", after=["build-o", "build-one"])
        assert task.record.after == (first.id,)
        with pytest.raises(Ambiguous):
            await session.run("true", after="build-")
        with pytest.raises(NotFound):
            await session.run("true", after="nothing")
        for other in (bb.session("prefix", owner="eve"), bb.session("another")):
            with pytest.raises(NotFound):
                await other.run("true", after=first.id)
        await task.wait(30)


async def refused(session: Session, **options: object) -> None:
    with pytest.raises(UsageError):
        await session.run("true", **options)  # pyright: ignore[reportArgumentType]


async def test_x9_what_makes_no_sense_is_refused_and_nothing_is_started(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("nonsense")
        await refused(session, after_failure=True)
        await refused(session, after=[f"t{number}" for number in range(101)])
        await refused(session, retries=-1)
        await refused(session, retries=1_000_000)
        await refused(session, nice=20)
        await refused(session, nice=-21)
        await refused(session, memory=0)
        await refused(session, memory=-1)
        await refused(session, cpu_time=0.5)
        await refused(session, cpu_time=float("nan"))
        assert await session.tasks() == []


async def test_x9_what_another_waits_for_is_not_pruned(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        first = await (await session.run("true")).wait(30)
        kill_all_of_ours(home)
        with nobody_keeps(home):
            second = await session.run("true", after=first.id)
            await bb.prune(older_than=0)
            assert (await first.refresh()).state is State.SUCCEEDED
        await second.wait(30)
        assert second.state is State.SUCCEEDED


async def test_e12_a_further_try_does_not_need_what_came_before(home: Path, tmp_path: Path) -> None:
    """It was its turn already: what it came after may be forgotten meanwhile."""
    line = f"echo ran >>{tmp_path}/ran; until [ -e {tmp_path}/go ]; do sleep 0.01; done; exit 1"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        first = await (await session.run("true")).wait(30)
        task = await session.run(line, after=first.id, retries=1)
        await wait_until_async((tmp_path / "ran").exists)
        assert await bb.prune(older_than=0) == 1
        (tmp_path / "go").touch()
        await task.wait(30)
        assert task.error is not None
        assert task.error.kind is ErrorKind.EXIT
        assert (tmp_path / "ran").read_text() == "ran\nran\n"
