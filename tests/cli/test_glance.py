"""A quick look at the record: without one, with an old one, and when nobody looks after it."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from backburner import Backburner, State, StoreUnusable
from backburner.model.home import Home
from backburner.runtime.election import keeper_pid
from backburner.runtime.glance import Glance
from backburner.store.protocol import Scope
from tests.cli.program import Program
from tests.waiting import wait_until

OURS = Scope("local", "test")


def test_a_home_without_a_record_has_no_tasks_and_gets_none(tmp_path: Path) -> None:
    with Glance(Home(tmp_path / "none")) as glance:
        assert glance.recent(OURS, limit=5) == ([], False)
        assert list(glance.everything(OURS)) == []
        assert glance.active_count() == 0
        glance.see_to_keeper()
    assert not (tmp_path / "none").exists()


def test_a_record_of_an_older_form_is_brought_up_to_date(home: Path) -> None:
    (home / "backburner.db").touch()
    for _ in range(2):
        with Glance(Home(home)) as glance:
            assert glance.recent(OURS, limit=5) == ([], False)


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_home_that_is_no_folder_is_a_clear_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnusable, match="cannot be used: Not a directory"):
        Glance(Home(tmp_path / place))


async def test_recent_ones_and_all_of_them(home: Path) -> None:
    async with Backburner.open() as backburner:
        session = backburner.session("test")
        ended = [await session.run("true", cwd="/nowhere") for _ in range(5)]
        await backburner.session("other").run("true", cwd="/nowhere")
    newest_first = [task.id for task in reversed(ended)]
    with Glance(Home(home)) as glance:
        tasks, more = glance.recent(OURS, limit=3)
        assert [task.id for task in tasks] == newest_first[:3]
        assert more
        tasks, more = glance.recent(OURS, limit=5)
        assert [task.id for task in tasks] == newest_first
        assert not more
        assert glance.recent(OURS, limit=5, states=(State.RUNNING,)) == ([], False)
        assert [task.id for page in glance.everything(OURS) for task in page] == newest_first
        assert len(glance.recent(Scope("local"), limit=9)[0]) == 6
        assert glance.recent(Scope("someone"), limit=9) == ([], False)


async def test_all_of_them_come_in_pages(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backburner.runtime.glance._PAGE", 2)
    async with Backburner.open() as backburner:
        session = backburner.session("test")
        for _ in range(4):
            await session.run("true", cwd="/nowhere")
    with Glance(Home(home)) as glance:
        assert [len(page) for page in glance.everything(OURS)] == [2, 2]


@pytest.mark.slow
def test_x2_a_look_calls_a_keeper_where_there_is_work_for_one(
    backburner: Program, home: Path
) -> None:
    task = backburner("run", "--", "sleep 60").id
    wait_until(lambda: backburner("ls", "-q", "--state", "running").out)
    keeper = wait_until(lambda: keeper_pid(Home(home)))
    guardian = psutil.Process(keeper).parent()
    assert guardian is not None
    for pid in (guardian.pid, keeper):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: keeper_pid(Home(home)) is None)
    assert backburner("ls", "-q").out == f"{task}\n"
    assert wait_until(lambda: keeper_pid(Home(home))) != keeper
    assert backburner("stop", task).out == f"{task} canceled\n"
