"""E12: two processes start the same id at the same time, each with an environment of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from backburner import Backburner
from tests.conftest import REPOSITORY
from tests.faults.homes import waiting_starts

NAMES = ("ada", "bob")
IDS = [f"race-{number}" for number in range(25)]


def race(home: Path, session: str, line: str, *, explicit: bool) -> dict[str, list[str]]:
    """Both start all the ids, as fast as they can; what each was answered."""
    program = [sys.executable, "-m", "tests.runtime.starter", str(home), session]
    racers = {
        name: subprocess.Popen(
            [*program, name, line, str(int(explicit)), *IDS],
            cwd=REPOSITORY,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name in NAMES
    }
    for racer in racers.values():
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers.values():
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    return {name: racer.communicate()[0].split() for name, racer in racers.items()}


@pytest.mark.slow
async def test_e12_an_inherited_environment_is_that_of_one_of_them(
    home: Path, tmp_path: Path
) -> None:
    """Not part of the task: both get it, it runs once, and what the other handed over is gone."""
    line = f"echo $WHO >>{tmp_path}/$BACKBURNER_TASK_ID"
    answers = race(home, "s", line, explicit=False)
    assert answers == dict.fromkeys(NAMES, ["started"] * len(IDS))
    async with Backburner.open(home) as bb:
        for name in IDS:
            await (await bb.session("s").task(name)).wait(timeout=30)
            assert (tmp_path / name).read_text() in ("ada\n", "bob\n")
        assert waiting_starts(home) == []
        assert len(await bb.session("s").told()) == len(IDS)


@pytest.mark.slow
async def test_e12_an_environment_that_was_given_is_part_of_the_task(
    home: Path, tmp_path: Path
) -> None:
    """So one of the two is refused, and the job runs with what the other one has given."""
    line = f"echo $WHO >>{tmp_path}/$BACKBURNER_TASK_ID"
    answers = race(home, "s", line, explicit=True)
    async with Backburner.open(home) as bb:
        for number, name in enumerate(IDS):
            task = await (await bb.session("s").task(name)).wait(timeout=30)
            said = {who: answers[who][number] for who in NAMES}
            assert sorted(said.values()) == ["conflict", "started"]
            winner = task.record.spec["env"]["WHO"]
            assert said[winner] == "started"
            assert (tmp_path / name).read_text() == f"{winner}\n"
        assert waiting_starts(home) == []
