"""X2, E11: Python tasks when keeper and application die around them."""

import asyncio
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, EventKind, State, Task
from backburner.model.home import Home
from backburner.work.process.condition import Ended, inspect
from tests.faults.victims import kill_all_of_ours, kill_keeper
from tests.waiting import wait_until

FUNCTIONS = "tests.work.child.functions"

pytestmark = pytest.mark.slow


async def waiting(bb: Backburner, go: Path) -> Task:
    """A call that has said something, and waits for the file."""
    task = await bb.session("s").call(
        f"{FUNCTIONS}:say_and_wait", {"text": "half", "file": str(go)}
    )
    log = Path(task.document()["paths"]["log"])
    wait_until(lambda: log.exists() and log.read_text())
    return task


async def test_x2_a_call_goes_on_when_its_keeper_dies(home: Path, tmp_path: Path) -> None:
    async with Backburner.open(home) as bb:
        go = tmp_path / "go"
        task = await waiting(bb, go)
        kill_keeper(home)
        go.touch()
        await task.wait(60)
        assert (task.state, task.result, task.record.attempt) == (State.SUCCEEDED, "waited", 1)


@pytest.mark.parametrize("name", ["say_and_wait", "fails_after"])
async def test_x2_what_became_of_a_call_is_known_after_everything_of_ours_died(
    home: Path, tmp_path: Path, name: str
) -> None:
    """It ends while nobody looks, and its outcome is found by the keeper that comes."""
    go = tmp_path / "go"
    async with Backburner.open(home) as bb:
        task = await bb.session("s").call(f"{FUNCTIONS}:{name}", {"text": "half", "file": str(go)})
        log = Path(task.document()["paths"]["log"])
        wait_until(lambda: log.exists() and log.read_text())
        kill_all_of_ours(home)
        go.touch()
        folder = Home(home).attempt(task.id, 1)
        wait_until(lambda: isinstance(inspect(folder), Ended))
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(60)
        if name == "say_and_wait":
            assert (task.state, task.exit_code, task.result) == (State.SUCCEEDED, 0, "waited")
        else:
            assert task.error is not None
            assert (task.error.kind, task.exit_code) == (ErrorKind.ERROR, None)
            assert task.error.message == "RuntimeError: half"


async def test_promise_5_a_call_is_made_once_though_keepers_die(home: Path, tmp_path: Path) -> None:
    """Killed again and again around the starts: each call is made once."""
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        files = [tmp_path / f"calls{number}" for number in range(8)]
        tasks: list[Task] = []
        for number, file in enumerate(files):
            arguments = {"file": str(file), "times": 0}
            tasks.append(await session.call(f"{FUNCTIONS}:fails_until", arguments))
            if number % 3 == 2:
                await asyncio.to_thread(kill_keeper, home)
        await asyncio.gather(*(task.wait(60) for task in tasks))
        assert [task.result for task in tasks] == [1] * len(files)
        assert [file.read_text() for file in files] == ["x"] * len(files)
        for task in tasks:
            kinds = [event.kind async for event in task.events(follow=False)]
            assert kinds.count(EventKind.FINISHED) == 1
