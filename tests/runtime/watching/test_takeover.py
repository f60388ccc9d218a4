"""X4, X2: kill -9 of the keeper, at any moment: readiness, matches and silences are told once."""

import os
import signal
from pathlib import Path

import pytest

from backburner import Backburner, NeverReady, SignalKind, State, Task
from tests.faults.record import rows
from tests.faults.victims import kill_all_of_ours, kill_keeper, nobody_keeps, wait_for_keeper
from tests.runtime.watching.test_silence import was_silent
from tests.runtime.watching.told import events, texts, told, until_told
from tests.waiting import pause_async, wait_until_async

pytestmark = pytest.mark.slow


async def adopted(task: Task) -> bool:
    return bool(await events(task, "adopted"))


@pytest.mark.parametrize("condition", ["output", "port", "file", "http"])
@pytest.mark.parametrize("when", ["before", "after", "while nobody looks"])
async def test_x4_x2_readiness_is_told_once_by_whoever_keeps(
    home: Path, tmp_path: Path, free_port: int, condition: str, when: str
) -> None:
    given = {
        "output": {"ready_output": "Serving HTTP"},
        "port": {"ready_port": free_port},
        "file": {"ready_file": "ready"},
        "http": {"ready_http": f"http://127.0.0.1:{free_port}/"},
    }
    server = f"python3 -u -m http.server {free_port} --bind 127.0.0.1"
    line = f"echo begun; read -r; touch ready; exec {server}"
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        task = await session.run(line, stdin=True, cwd=tmp_path, **given[condition])  # pyright: ignore[reportArgumentType]
        await wait_until_async(lambda: begun(task))
        if when == "before":
            wait_for_keeper(home, other_than=kill_keeper(home))
            await task.send("go")
            await task.wait(30, until="ready")
        elif when == "after":
            await task.send("go")
            await task.wait(30, until="ready")
            wait_for_keeper(home, other_than=kill_keeper(home))
            await wait_until_async(lambda: adopted(task))
            await pause_async(0.3, because="a second telling would come by now")
        else:
            kill_all_of_ours(home)
            with nobody_keeps(home):
                await task.send("go")
                await wait_until_async((tmp_path / "ready").exists)
                await pause_async(0.3, because="the server comes up while nobody looks")
            await task.wait(30, until="ready")
        assert len(await told(session, SignalKind.READY)) == 1
        assert len(await events(task, "ready")) == 1
        await task.stop(force=True)
        assert "before it was ready" not in (await texts(session, SignalKind.CANCELED))[0]


async def begun(task: Task) -> bool:
    """Its command runs: a keeper that dies now has not left a start for the next one."""
    return (await task.output()).text.startswith("begun\n") and task.state is State.RUNNING


async def test_x4_x2_a_death_while_nobody_looks_is_before_readiness(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(
            "echo begun; read -r; exit 4", stdin=True, ready_output="up"
        )
        await wait_until_async(lambda: begun(task))
        kill_all_of_ours(home)
        with nobody_keeps(home):
            await task.send("end")
            await pause_async(0.3, because="it ends while nobody looks")
        with pytest.raises(NeverReady):
            await task.wait(30, until="ready")
        await task.refresh()
        assert task.error is not None
        assert task.error.message == "exit code 4, before it was ready"


async def test_x4_e11_what_a_reboot_has_ended_was_ready_or_not(home: Path) -> None:
    """What its log says is looked at, though nobody saw it when it was written."""
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        tasks = [
            await session.run(
                f"echo begun; read -r; {line}; exec sleep 60", stdin=True, ready_output="^up$"
            )
            for line in ("echo up", "echo down")
        ]
        for task in tasks:
            await wait_until_async(lambda task=task: begun(task))
        kill_all_of_ours(home)
        with nobody_keeps(home):
            for task in tasks:
                await task.send("go")
                await wait_until_async(lambda task=task: has_printed(task))
                assert task.record.pid is not None
                os.killpg(task.record.pid, signal.SIGKILL)
            rows(home, "UPDATE task SET boot_id = 'another boot' WHERE boot_id IS NOT NULL")
        messages = [(await task.wait(30)).error for task in tasks]
        restarted = "the machine was restarted while it ran"
        assert [error and error.message for error in messages] == [
            restarted,
            f"{restarted}, before it was ready",
        ]
        assert [task.record.ready_at is None for task in tasks] == [False, True]


async def has_printed(task: Task) -> bool:
    return (await task.output()).text.count("\n") == 2


async def test_x4_x2_matches_are_told_once_and_none_is_lost(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        line = "echo begun; while read -r word; do echo ERROR $word; done"
        task = await session.run(line, match="ERROR", ready_output="never", stdin=True)
        await wait_until_async(lambda: begun(task))
        await task.send("0")
        await until_told(session, SignalKind.MATCH)
        for number in range(1, 4):
            await task.send(str(number))
            await task.send(f"{number} again")
            wait_for_keeper(home, other_than=kill_keeper(home))
        await task.send_eof()
        await task.wait(30)
        signals = await told(session, SignalKind.MATCH)
        assert len({signal["key"] for signal in signals}) == len(signals)
        assert sum(1 + signal["data"]["more"] for signal in signals) == 7
        assert signals[0]["data"]["line"] == "ERROR 0"
        assert len(await events(task, "match")) == len(signals)


async def test_x4_x2_a_flood_that_was_stopped_stays_stopped(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        task = await session.run("yes ERROR | head -n 5000; exec sleep 60", match="ERROR")
        await wait_until_async(lambda: last_is_the_end(session))
        count = len(await told(session, SignalKind.MATCH))
        wait_for_keeper(home, other_than=kill_keeper(home))
        await wait_until_async(lambda: adopted(task))
        await pause_async(0.3, because="a further telling would come by now")
        assert len(await told(session, SignalKind.MATCH)) == count
        await task.stop(force=True)
        assert len(await told(session, SignalKind.MATCH)) == count


async def last_is_the_end(session: object) -> bool:
    signals = await told(session, SignalKind.MATCH)  # pyright: ignore[reportArgumentType]
    return bool(signals) and bool(signals[-1]["data"].get("stopped"))


async def test_x4_x2_many_matches_while_nobody_looks_are_no_flood(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        line = "echo begun; read -r; yes ERROR | head -n 5000; echo done; exec sleep 60"
        task = await session.run(line, match="ERROR", stdin=True)
        await wait_until_async(lambda: begun(task))
        kill_all_of_ours(home)
        with nobody_keeps(home):
            await task.send("go")
            await wait_until_async(lambda: ended(task))
        signals = await until_told(session, SignalKind.MATCH)
        await task.stop(force=True)
        signals = await told(session, SignalKind.MATCH)
        assert sum(1 + signal["data"]["more"] for signal in signals) == 5000
        assert not any("stopped" in signal["data"] for signal in signals)


async def ended(task: Task) -> bool:
    return (await task.output(last_lines=1)).text == "done\n"


async def test_x4_x2_a_silence_is_told_once_by_two_keepers(home: Path) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        task = await session.run("echo begun; exec sleep 60", silence=1)
        await wait_until_async(lambda: was_silent(task, "begun\n"))
        before = await events(task, "silent")  # on a busy machine one from before its word too
        wait_for_keeper(home, other_than=kill_keeper(home))
        await wait_until_async(lambda: adopted(task))
        await pause_async(1.5, because="a second telling would come by now")
        assert await events(task, "silent") == before
        assert len(await told(session, SignalKind.SILENT)) == len(before)
        await task.stop(force=True)


async def test_x4_x2_a_silence_that_began_under_another_keeper_counts_from_its_start(
    home: Path,
) -> None:
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        task = await session.run("echo begun; exec sleep 60", silence=6)
        await wait_until_async(lambda: begun(task))
        await pause_async(4.0, because="the silence goes on under the first keeper")
        wait_for_keeper(home, other_than=kill_keeper(home))
        await until_told(session, SignalKind.SILENT)
        at = {event.kind.value: event.at async for event in task.events(follow=False)}
        started = (await task.refresh()).record.started_at
        assert started is not None
        assert at["silent"] - started > 5.9e6
        assert at["silent"] - at["adopted"] < 5.9e6, "from the start, and not from this keeper on"
        await task.stop(force=True)
