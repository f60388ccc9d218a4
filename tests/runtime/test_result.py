"""E4, E8: whoever hears of an end finds `result.json` at the path that the task names."""

import asyncio
import json
from pathlib import Path
from typing import Any

from backburner import Backburner, Task


def result_of(task: Task) -> Any:
    """What its file says."""
    return json.loads(Path(task.document()["paths"]["result"]).read_text())


async def test_e4_the_result_is_there_when_the_end_is_heard_of(shared_home: Path) -> None:
    """At once and every time, for one that waits and for one that is told."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session("results")

        async def wait_and_look(number: int) -> Any:
            task = await (await session.run(f"exit {number}")).wait(timeout=30)
            return result_of(task)

        results = await asyncio.gather(*(wait_and_look(number) for number in range(30)))
        assert [result["exit_code"] for result in results] == list(range(30))
        assert results[0] == {"status": "succeeded", "exit_code": 0}
        assert results[7]["error"] == {"kind": "exit", "message": "exit code 7"}
        heard = 0
        async for signal in session.signals():
            task = await session.task(signal.task)
            assert result_of(task)["exit_code"] == task.exit_code
            assert await signal.ack()
            heard += 1
            if heard == 30:
                break


async def test_e4_a_task_that_was_stopped_or_ran_too_long_has_one_too(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("ended results")
        stopped = await session.run("echo up; sleep 3600")
        async for event in stopped.events():
            if event.kind == "started":
                break
        await stopped.stop(force=True)
        assert result_of(stopped) == {"status": "canceled", "exit_code": None}
        late = await (await session.run("sleep 3600", max_runtime=0.1)).wait(timeout=30)
        assert result_of(late)["status"] == "failed"
        assert result_of(late)["error"]["kind"] == "timeout"
