"""X4: a session is told when a job has printed nothing for too long, once for each silence."""

from pathlib import Path

import pytest

from backburner import Backburner, SignalKind, Task
from tests.runtime.watching.told import events, told, until_told
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow


async def test_x4_each_silence_is_told_once(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("silent")
        line = "echo one; read -r; echo two; exec sleep 60"
        task = await session.run(line, silence=1, title="build", stdin=True)
        await wait_until_async(lambda: was_silent(task, "one\n"))
        signal, *_ = await told(session, SignalKind.SILENT)
        assert signal["text"] == f"build ({task.id}) has printed nothing for 1.0s"
        assert signal["data"] == {"silence_s": 1}
        started = task.record.started_at or (await task.refresh()).record.started_at
        first, *_ = [
            event async for event in task.events(follow=False) if event.kind.value == "silent"
        ]
        assert started is not None
        assert first.at - started >= 0.9e6
        await task.send("go on")
        await wait_until_async(lambda: was_silent(task, "one\ntwo\n"))
        await task.stop(force=True)
        silent = [event["position"] for event in await events(task, "silent")]
        # On a busy machine also before its first word.
        assert silent in ([[4], [8]], [[0], [4], [8]])
        assert len(await told(session, SignalKind.SILENT)) == len(silent)


async def was_silent(task: Task, after: str) -> bool:
    """Whether it was told of a silence after these words."""
    return [len(after)] in [event["position"] for event in await events(task, "silent")]


async def test_x4_a_job_that_prints_is_not_silent(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("talks")
        line = "for i in $(seq 12); do echo $i >&2; sleep 0.3; done"
        await (await session.run(line, silence=3, separate_stderr=True)).wait(60)
        assert await told(session, SignalKind.SILENT) == []


async def test_x4_a_job_that_never_prints_is_silent_from_its_start(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("never")
        task = await session.run("sleep 60", silence=1)
        await until_told(session, SignalKind.SILENT)
        await task.stop(force=True)


async def test_x4_x5_a_job_that_waits_for_an_answer_is_not_silent(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("asks")
        # By the shell itself, which takes no time to load: it is to ask before it is silent.
        asks = '{"ask": {"id": "q", "question": "Go on?"}}'
        line = f"echo '{asks}' >>$BACKBURNER_REPORT; exec sleep 60"
        task = await session.run(line, silence=3)
        await until_told(session, SignalKind.INPUT_REQUIRED)
        other = await session.run("sleep 4")
        await other.wait(30)
        before = len(await told(session, SignalKind.SILENT))
        assert before == 0
        await task.send("yes")
        await until_told(session, SignalKind.SILENT)
        await task.stop(force=True)
