"""E4, E8: whoever hears of an end finds `result.json` at the path that the task names."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner, ErrorKind, State, Task


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


@pytest.mark.parametrize(
    "said",
    [
        '"status": "succeeded", "exit_code": 0, "result": NaN',
        '"status": "failed", "exit_code": true, "error": {"kind": "exit", "message": "x"}',
        '"status": "failed", "exit_code": 1.0, "error": {"kind": "exit", "message": "x"}',
        f'"status": "succeeded", "exit_code": 0, "result": {"[" * 900}{"]" * 900}',
    ],
    ids=["NaN", "true", "1.0", "deep"],
)
async def test_x2_a_job_that_writes_its_own_result_ends_all_the_same(
    shared_home: Path, said: str
) -> None:
    """What the record does not take is no end: how it ended is not known then."""
    async with Backburner.open(shared_home) as bb:
        put = f"cd $(dirname $BACKBURNER_REPORT); rm wrapper; echo '{{{said}}}' >result.json"
        task = await (await bb.session("own results").run(put)).wait(timeout=30)
        assert (task.state, task.exit_code) == (State.FAILED, None)
        assert task.error is not None
        assert task.error.kind is ErrorKind.KILLED
        assert task.document()["error"] == result_of(task)["error"]
