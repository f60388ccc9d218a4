"""E12, X3: ended tasks go for room, the oldest first, and an id can be used again at once."""

import asyncio
import os
from pathlib import Path

import pytest

from backburner import Backburner, NotFound, Session, State, Task
from backburner.runtime.retention import Rule, choose, prune, size_of_all, size_on_disk
from backburner.store.protocol import Scope
from tests.faults.victims import kill_keeper, sleepers, unique_seconds
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

KB = 1024


async def filled(session: Session, kilobytes: int, **options: str) -> Task:
    """A task that has ended and takes about so much room."""
    line = f"head -c {kilobytes * KB} /dev/urandom"
    return await (await session.run(line, **options)).wait(30)  # type: ignore[arg-type]


async def left_of(session: Session) -> list[str]:
    return sorted(task.record.title for task in await session.tasks())


async def tell_all(session: Session) -> None:
    async for signal in session.signals(follow=False):
        await signal.ack()


async def test_e12_the_oldest_go_until_the_rest_takes_less(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        for name in ("a", "b", "c", "d"):
            await filled(session, 200, title=name)
        await tell_all(session)
        total = await size_of_all(bb.store, bb.home)
        assert 800 * KB < total < 1000 * KB
        assert await bb.prune(max_size=total) == 0
        assert await bb.prune(max_size=450 * KB) == 2
        assert await left_of(session) == ["c", "d"]
        assert await size_of_all(bb.store, bb.home) <= 450 * KB
        assert await bb.prune(max_size=0) == 2
        assert list((home / "tasks").iterdir()) == []


async def test_e12_bytes_on_disk_count_and_not_those_that_a_log_seems_to_have(
    home: Path, tmp_path: Path
) -> None:
    """A log of which the middle was freed."""
    hollow = tmp_path / "hollow"
    hollow.mkdir()
    with (hollow / "output.log").open("wb") as file:
        file.truncate(10**9)
    assert size_on_disk(str(hollow)) < 100 * KB
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await (await session.run("head -c 30000000 /dev/zero | tr '\\0' x")).wait(60)
        assert (await session.tasks())[0].document()["output"]["bytes"] == 30_000_000
        assert await bb.prune(max_size=5_000_000) == 0


async def test_e12_what_nobody_was_told_goes_last(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        await filled(session, 100, title="untold 1")
        await filled(session, 100, title="untold 2")
        for name in ("told 1", "told 2"):
            task = await filled(session, 100, title=name)
            async for signal in session.signals(follow=False):
                if signal.task == task.id:
                    await signal.ack()
        assert await bb.prune(max_size=350 * KB) == 1
        assert await left_of(session) == ["told 2", "untold 1", "untold 2"]
        assert await bb.prune(max_size=150 * KB) == 2
        assert await left_of(session) == ["untold 2"], "nothing else was left"


async def test_e12_what_runs_or_has_left_something_behind_stays_however_large(home: Path) -> None:
    seconds = unique_seconds()
    flood = f"head -c {300 * KB} /dev/urandom"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        running = await session.run(f"{flood}; sleep {seconds}")
        lingering = await (await session.run(f"{flood}; sleep {seconds} & disown")).wait(30)
        wait_until(lambda: len(sleepers(seconds)) == 2)
        small = await filled(session, 1)
        await tell_all(session)
        assert await bb.prune(max_size=0) == 1
        with pytest.raises(NotFound):
            await session.task(small.id)
        assert await size_of_all(bb.store, bb.home) > 600 * KB
        for task in (running, lingering):
            await task.stop(force=True)


async def test_e12_room_is_counted_in_the_scope_that_is_pruned(home: Path) -> None:
    """A session that prunes itself does not pay for what another one keeps."""
    async with Backburner.open(home) as bb:
        mine, other = bb.session("mine"), bb.session("other")
        await filled(other, 500)
        await filled(mine, 100)
        for session in (mine, other):
            await tell_all(session)
        rule = Rule(max_size=300 * KB)
        assert (await prune(bb.store, bb.home, rule, mine.scope)).count == 0
        assert (await prune(bb.store, bb.home, rule, Scope("local"))).count == 1
        assert await other.tasks() == []


async def test_e12_both_rules_together_and_nothing_is_changed_by_looking(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        tasks = [await filled(session, 100, title=name) for name in ("a", "b", "c", "d")]
        second = tasks[1].record.finished_at
        assert second is not None
        rule = Rule(before=second, max_size=250 * KB)
        found = [doomed async for doomed in choose(bb.store, bb.home, rule)]
        assert [doomed.task.title for doomed in found] == ["a", "b"]
        assert all(100 * KB <= doomed.size < 130 * KB for doomed in found)
        assert await left_of(session) == ["a", "b", "c", "d"]
        pruned = await prune(bb.store, bb.home, rule)
        assert (pruned.count, pruned.size) == (2, sum(doomed.size for doomed in found))
        assert await left_of(session) == ["c", "d"]


@pytest.mark.slow
async def test_e12_the_keeper_makes_room_by_itself(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_MAX_SIZE", str(150 * KB))
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        for name in ("a", "b", "c"):
            await filled(session, 100, title=name)
        await tell_all(session)
        running = await session.run("sleep 3600", title="z")
        kill_keeper(home)  # a keeper looks when it comes, then every hour

        async def made_room() -> bool:
            return await left_of(session) == ["c", "z"]

        await wait_until_async(made_room)
        await running.stop(force=True)


@pytest.mark.slow
async def test_e12_an_id_is_used_again_while_its_old_folder_is_removed(
    home: Path, tmp_path: Path
) -> None:
    """The old one has thousands of files, the new one starts while they go: it keeps its own."""
    ran = tmp_path / "ran"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        for number in range(5):
            task = await (await session.run(f"echo {number} | tee -a {ran}", id="nightly")).wait(30)
            assert task.state is State.SUCCEEDED, task.error
            assert (await task.output()).text == f"{number}\n"
            folder = home / "tasks" / "nightly.1"
            for name in range(600):
                (folder / f"extra{name}").touch()
            pruning = asyncio.create_task(bb.prune(older_than=0))

            async def is_free() -> bool:
                return await bb.store.get("nightly") is None

            await wait_until_async(is_free)
            again = await (await session.run("echo again", id="nightly")).wait(30)
            await pruning
            assert again.state is State.SUCCEEDED, again.error
            assert (await again.output()).text == "again\n"
            assert max(os.listdir(folder)) == "result.json"
            await bb.prune(older_than=0)
        assert ran.read_text().split() == [str(number) for number in range(5)]
        assert not (home / "trash").exists()


async def test_e12_what_a_crashed_prune_has_thrown_away_is_removed_by_the_next(home: Path) -> None:
    (home / "trash" / "0123").mkdir(parents=True)
    (home / "trash" / "0123" / "output.log").write_text("old output")
    async with Backburner.open(home) as bb:
        assert await bb.prune() == 0
    assert not (home / "trash").exists()
