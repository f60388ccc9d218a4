"""E3: the limits of sessions and workers in a race, with their full numbers."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from backburner import Backburner, LimitReached, State, Task
from backburner.model.limits import Settings
from tests.nodes.conftest import NewWorker
from tests.waiting import wait_until_async

pytestmark = [pytest.mark.slow]

PROGRAMS = 4
SESSIONS = 40
EACH = 2
"""So often each program tries to start one in each session."""


def began(folder: Path) -> list[list[str]]:
    """For each that began: a word, the task, the process, a number."""
    return [path.name.split("-") for path in folder.glob("began-*")]


async def test_e3_five_a_session_and_sixty_four_a_worker_in_a_race_of_programs(
    home: Path, address: str, new_worker: NewWorker, tmp_path: Path
) -> None:
    """320 starts in 40 sessions at once; what is let in is more than two workers have places."""
    limits = Settings()
    assert (limits.tools_per_session, limits.tools_per_worker) == (5, 64)
    for _ in range(2):
        new_worker("--tools", "tests.nodes.shop", "--concurrency", "64")
    async with AsyncExitStack() as stack:
        programs = [
            await stack.enter_async_context(Backburner.open(address)) for _ in range(PROGRAMS)
        ]

        async def start(program: Backburner, session: str) -> Task | None:
            try:
                return await program.session(session).spawn("hold", {"folder": str(tmp_path)})
            except LimitReached:
                return None

        tried = await asyncio.gather(
            *(
                start(program, f"chat-{number}")
                for _ in range(EACH)
                for program in programs
                for number in range(SESSIONS)
            )
        )
        tasks = [task for task in tried if task is not None]
        assert len(tried) == 320
        assert Counter(task.record.session for task in tasks) == {
            f"chat-{n}": 5 for n in range(SESSIONS)
        }

        await wait_until_async(lambda: len(began(tmp_path)) >= 128, timeout=60)
        states = Counter([(await task.refresh()).state for task in tasks])
        assert states == {State.RUNNING: 128, State.QUEUED: 72}
        assert set(Counter(pid for _, _, pid, _ in began(tmp_path)).values()) == {64}
        (tmp_path / "go").touch()
        for task in tasks:
            assert (await task.wait(timeout=60)).state is State.SUCCEEDED
        assert set(Counter(task for _, task, _, _ in began(tmp_path)).values()) == {1}, "none twice"


async def test_a_worker_has_as_many_tools_at_once_as_commands(
    shared: Backburner, new_worker: NewWorker, tmp_path: Path
) -> None:
    new_worker("--tools", "tests.nodes.shop", "--concurrency", "2")
    hold = (
        f"touch {tmp_path}/ran-$BACKBURNER_TASK_ID; until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    )
    commands = [await shared.session(f"chat-{number}").run(hold) for number in range(4)]
    tools = [
        await shared.session(f"chat-{number}").spawn("hold", {"folder": str(tmp_path)})
        for number in range(4)
    ]

    async def at_work() -> Counter[State]:
        return Counter([(await task.refresh()).state for task in (*commands, *tools)])

    wanted = {State.RUNNING: 4, State.QUEUED: 4}
    await wait_until_async(lambda: len([*began(tmp_path), *tmp_path.glob("ran-*")]) >= 4)
    assert await at_work() == wanted
    # One goes, and one comes: the others have waited for that.
    await commands[0].stop(force=True)
    await tools[0].stop(force=True)
    await wait_until_async(lambda: len([*began(tmp_path), *tmp_path.glob("ran-*")]) >= 6)
    assert await at_work() == {State.CANCELED: 2, State.RUNNING: 4, State.QUEUED: 2}
    (tmp_path / "go").touch()
    for task in (*commands, *tools):
        await task.wait(timeout=60)
