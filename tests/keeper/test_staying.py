"""X9: a keeper that stays, as a service has it: always there, from boot on, and polite."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, EventKind, State
from backburner.keeper.unit import Unit
from backburner.model.home import Home
from backburner.runtime.edition import ours
from backburner.runtime.election import sitting_keeper
from backburner.runtime.succession import dismiss
from backburner.work.process.condition import Ended, inspect
from tests.faults.record import rows
from tests.faults.victims import (
    guardians_of,
    is_running,
    keeper_of,
    keepers_of,
    kill,
    kill_all_of_ours,
    sleepers,
    unique_seconds,
    wait_for_keeper,
)
from tests.keeper.editions import copy_package
from tests.store.raw import Raw
from tests.waiting import pause, wait_until, wait_until_async

pytestmark = pytest.mark.slow


def start_service(
    home: Path, environment: dict[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """What systemd does with the unit: the command itself, as a child."""
    with (home / "keeper.log").open("ab") as log:
        return subprocess.Popen(Unit.of(home).command(), env=environment, stdout=log, stderr=log)


def stays(home: Path) -> bool:
    sitting = sitting_keeper(Home(home))
    return sitting is not None and sitting.edition.stays


def end_service(service: "subprocess.Popen[bytes]") -> int:
    service.terminate()
    return service.wait(60)


def catches_term(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def test_x9_it_stays_with_nothing_to_do_and_leaves_when_it_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_KEEPER_IDLE_S", "0.1")
    service = start_service(home)
    keeper = wait_for_keeper(home)
    pause(2.5, because="an ordinary keeper would have left by then")
    assert keeper_of(home) == keeper
    assert stays(home)
    assert end_service(service) == 0
    wait_until(lambda: not keepers_of(home))


async def test_x9_stopping_the_service_leaves_the_jobs_alone(home: Path) -> None:
    seconds = unique_seconds()
    service = start_service(home)
    wait_for_keeper(home)
    async with Backburner.open(home) as bb:
        task = await bb.session("test").run(f"sleep {seconds} & wait; exit 3")
        await wait_until_async(lambda: sleepers(seconds))
    assert end_service(service) == 0
    assert sleepers(seconds)
    wait_until(lambda: not keepers_of(home))
    service = start_service(home)
    wait_for_keeper(home)
    async with Backburner.open(home) as bb:
        kill(*sleepers(seconds))
        task = await (await bb.session("test").task(task.id)).wait(30)
        assert (task.exit_code, task.record.attempt) == (3, 1)
    assert end_service(service) == 0


async def test_x9_it_takes_the_place_of_one_that_would_leave(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("test").run(f"sleep {seconds}")
        await wait_until_async(lambda: sleepers(seconds))
        ordinary = wait_for_keeper(home)
        service = start_service(home)
        await wait_until_async(lambda: stays(home))
        await wait_until_async(lambda: not is_running(ordinary) and len(guardians_of(home)) == 1)
        other = start_service(home)  # a second one finds it there
        assert other.wait(60) == 0
        await task.stop(force=True)
        assert task.state is State.CANCELED
    assert end_service(service) == 0


def test_x9_it_is_started_again_and_still_stays(home: Path) -> None:
    service = start_service(home)
    keeper = wait_for_keeper(home)
    kill(keeper)
    wait_for_keeper(home, other_than=keeper)
    wait_until(lambda: stays(home))
    (guardian,) = guardians_of(home)
    kill(guardian)
    service.wait(60)
    (guardian,) = wait_until(lambda: guardians_of(home))
    assert stays(home)
    wait_until(lambda: catches_term(guardian))
    os.kill(guardian, signal.SIGTERM)  # one that took over knows its keeper too
    wait_until(lambda: not keepers_of(home) and not guardians_of(home))


async def test_x9_a_newer_version_that_takes_over_from_one_that_stays_stays_too(
    home: Path, tmp_path: Path
) -> None:
    older = copy_package(tmp_path / "older", "0.0.1")
    service = start_service(home, older.environment())
    old = wait_for_keeper(home)
    async with Backburner.open(home) as bb:
        await (await bb.session("test").run("true")).wait(30)
        await wait_until_async(lambda: not is_running(old))
    assert service.wait(60) == 0, "it left on purpose: systemd does not start it again"
    sitting = wait_until(lambda: sitting_keeper(Home(home)))
    assert sitting.edition == ours(stays=True)
    kill(sitting.pid)
    wait_for_keeper(home, other_than=sitting.pid)
    wait_until(lambda: stays(home), message="its guardian did not know that it is to stay")
    wait_until(lambda: len(keepers_of(home)) == 1, message="another one is on its way")
    dismiss(Home(home))
    assert keeper_of(home) is None


def test_x9_without_its_home_it_fails_so_that_systemd_tries_again(tmp_path: Path) -> None:
    missing = tmp_path / "not mounted yet"
    done = subprocess.run(Unit.of(missing).command(), capture_output=True, timeout=30, check=False)
    assert done.returncode == 1
    assert not missing.exists()


async def test_x9_started_at_boot_it_fails_what_was_orphaned_and_tells(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("test").run(f"sleep {seconds}")
        await wait_until_async(lambda: sleepers(seconds))
    kill_all_of_ours(home)
    kill(*sleepers(seconds))
    folder = Home(home).attempt(task.id, 1)
    wait_until(lambda: isinstance(inspect(folder), Ended))  # else it would be written below
    with Raw(home / "backburner.db") as raw:
        raw("UPDATE task SET boot_id = 'the boot before'")
    Path(folder.wrapper).write_text("4711\n")  # no exit code on disk
    service = start_service(home)
    wait_until(lambda: rows(home, "SELECT state FROM task") == [("failed",)])
    assert rows(home, "SELECT key, state FROM signal") == [(f"{task.id}:end", "pending")]
    async with Backburner.open(home) as bb:
        task = await bb.session("test").task(task.id)
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED
        kinds = [event.kind async for event in task.events(follow=False)]
        assert kinds[-1] is EventKind.FINISHED
    assert end_service(service) == 0
