"""E12: what has ended is kept for 30 days unless told, then forgotten with all of its traces."""

from pathlib import Path

import pytest

from backburner import Backburner, NotFound, Settings, State
from tests.faults.record import rows
from tests.faults.victims import keeper_comes, kill_keeper, sleepers, unique_seconds
from tests.waiting import pause_async, wait_until, wait_until_async


def test_e12_thirty_days_unless_told() -> None:
    assert Settings().retention_s == 30 * 86400


async def test_e12_prune_forgets_what_has_ended_with_all_its_traces(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        ended = [await (await session.run(f"echo {n}; exit {n}")).wait(30) for n in range(5)]
        could_not = await session.run(["no-such-program-here"])
        running = await session.run(f"sleep {seconds}")
        lingering = await (await session.run(f"sleep {seconds} & disown")).wait(30)
        wait_until(lambda: len(sleepers(seconds)) == 2)
        assert await bb.prune() == 0  # nothing is 30 days old
        assert await bb.prune(older_than=3600) == 0
        assert await bb.prune(older_than=0) == 6
        for task in (*ended, could_not):
            with pytest.raises(NotFound):
                await session.task(task.id)
            assert list((home / "tasks").glob(f"{task.id}*")) == []
        left = {task.id for task in await session.tasks()}
        assert left == {running.id, lingering.id}
        assert {signal.task for signal in await session.told()} == {lingering.id}
        assert len(sleepers(seconds)) == 2
        for table in ("event", "signal"):
            orphans = f"SELECT count(*) FROM {table} WHERE task NOT IN (SELECT seq FROM task)"
            assert rows(home, orphans) == [(0,)]
        await running.stop(force=True)
        await lingering.stop(force=True)
        assert (lingering.state, running.state) == (State.SUCCEEDED, State.CANCELED)
        assert await bb.prune(older_than=0) == 2
        assert await session.tasks() == []
        assert list((home / "tasks").iterdir()) == []


@pytest.mark.slow
async def test_e12_an_id_that_was_forgotten_is_free_again(home: Path, tmp_path: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        line = f"echo ran >>{tmp_path}/ran"
        await (await session.run(line, id="nightly")).wait(30)
        await bb.prune(older_than=0)
        task = await (await session.run(line, id="nightly")).wait(30)
        assert task.state is State.SUCCEEDED
        assert (tmp_path / "ran").read_text() == "ran\nran\n"
        assert [event.number async for event in task.events()] == [1, 2, 3]


@pytest.mark.slow
async def test_e12_the_keeper_forgets_by_itself(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_RETENTION_S", "1")
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        old = await (await session.run("true")).wait(30)
        await pause_async(1.1, because="it has to be old enough")
        running = await session.run("sleep 3600")
        dead = kill_keeper(home)  # a keeper looks for what is old when it comes, then every hour
        await keeper_comes(home, other_than=dead)

        async def forgotten() -> bool:
            return old.id not in {task.id for task in await session.tasks()}

        await wait_until_async(forgotten)
        assert [task.id for task in await session.tasks()] == [running.id]
        await running.stop(force=True)
