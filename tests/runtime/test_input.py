"""Jobs with input through the library: sent at any time, and alive when everything of ours dies."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from backburner import (
    Backburner,
    ErrorKind,
    InputNotYet,
    InputRefused,
    State,
    Task,
    UsageError,
)
from backburner.work import input as job_input
from backburner.work.holder.launch import is_holder
from backburner.work.process.tree import Tree
from tests.faults.victims import (
    arguments_of,
    is_running,
    keeper_comes,
    kill,
    kill_all_of_ours,
    kill_keeper,
    nobody_keeps,
)
from tests.waiting import wait_until, wait_until_async


async def said(task: Task, text: str) -> str:
    async def seen() -> str | None:
        found = (await task.output()).text
        return found if text in found else None

    return await wait_until_async(seen)


def members(home: Path, task: Task) -> list[int]:
    assert task.record.place is not None
    return Tree(str(home), task.id, task.record.attempt, task.record.place.cgroup).members()


def holder_of(home: Path, task: Task) -> int:
    def found() -> int | None:
        holders = [pid for pid in members(home, task) if is_holder(arguments_of(pid))]
        return holders[0] if len(holders) == 1 else None

    return wait_until(found)


async def test_input_can_be_sent_right_after_the_start(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run("cat", stdin=True)
        await task.send("one")
        await task.send("two", raw=True)
        await task.send_eof()
        await task.wait(30)
        assert (task.state, task.exit_code) == (State.SUCCEEDED, 0)
        assert (await task.output()).text == "one\ntwo"
        assert task.record.leftovers == 0
        with pytest.raises(InputRefused, match="has ended"):
            await task.send("three")


async def test_without_either_standard_input_is_empty(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run("cat; echo over")
        await task.wait(30)
        assert (await task.output()).text == "over\n"
        assert "input" not in task.record.spec


async def test_standard_error_can_be_kept_apart_with_input(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run("cat; echo oh >&2", stdin=True, separate_stderr=True)
        await task.send("in")
        await task.send_eof()
        await task.wait(30)
        chunk = await task.output()
        assert (chunk.text, chunk.stderr_text) == ("in\n", "oh\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stdin": True, "pty": True}, "a terminal has an input already"),
        ({"pty": True, "separate_stderr": True}, "shows standard output and error as one"),
        ({"size": (80, 24)}, "only a terminal has a size"),
        ({"stdin": True, "size": (80, 24)}, "only a terminal has a size"),
        ({"pty": True, "size": (0, 24)}, "cannot have 0 columns and 24 rows"),
        ({"pty": True, "size": (80, 100_000)}, "cannot have 80 columns and 100000 rows"),
    ],
)
async def test_what_contradicts_itself_is_refused_and_nothing_is_started(
    shared_home: Path, options: dict[str, object], message: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("refused")
        with pytest.raises(UsageError, match=message):
            await session.run("true", **options)  # pyright: ignore[reportArgumentType]
        assert await session.tasks() == []


async def test_a_terminal_reads_well_and_runs_again_as_it_was(
    shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line breaks and redrawn lines are folded; `rerun` keeps terminal and size."""
    monkeypatch.delenv("TERM", raising=False)
    monkeypatch.setenv("COLUMNS", "33")  # of whoever starts it, and no concern of this terminal
    async with Backburner.open(shared_home) as bb:
        line = "stty size; echo $TERM $(env | grep -c COLUMNS); ls -d / --color=always; "
        line += r"printf '10 %%\r90 %%\n'"
        task = await bb.session("s").run(line, pty=True, size=(100, 40))
        await task.wait(30)
        assert (await task.output()).text == "40 100\nxterm-256color 0\n/\n90 %\n"
        assert "\r\n" in (await task.output(raw=True)).text
        again = await (await task.rerun()).wait(30)
        assert (await again.output()).text.startswith("40 100\n")


async def test_a_stopped_terminal_ends_at_once_and_leaves_nothing(shared_home: Path) -> None:
    """An interactive shell ignores TERM; its terminal is hung up."""
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("s").run(["bash", "--norc", "-i"], pty=True)
        await said(task, "$" if os.getuid() else "#")
        await task.send("sleep 3600 & echo st''arted")
        await said(task, "started")
        async with asyncio.timeout(20):
            await task.stop(grace=60)
        assert task.state is State.CANCELED
        assert members(shared_home, task) == []


@pytest.mark.parametrize("how", [{"stdin": True}, {"pty": True}], ids=["stdin", "pty"])
async def test_a_stop_right_after_the_start_is_heard_too(
    shared_home: Path, how: dict[str, bool]
) -> None:
    """The holder outlives TERM: sent before the command is there, it would be lost on it."""
    async with Backburner.open(shared_home) as bb:
        for _ in range(5):
            task = await bb.session("s").run(["sleep", "3600"], **how)  # pyright: ignore[reportArgumentType]
            async with asyncio.timeout(20):
                await task.stop(grace=60)
            assert task.state is State.CANCELED


async def test_one_that_has_not_started_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backburner.runtime.sending._START_S", 0.1)
    async with Backburner.open(home) as bb:
        with nobody_keeps(home):
            task = await bb.session("s").run("cat", stdin=True)
            with pytest.raises(InputNotYet, match="has not started yet"):
                await task.send("x")
        await task.stop()


# kill -9


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"stdin": True}, {"pty": True}], ids=["stdin", "pty"])
async def test_x2_input_and_terminal_outlive_keeper_and_guardian(
    home: Path, how: dict[str, bool]
) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run("cat; exit 7", **how)  # pyright: ignore[reportArgumentType]
        await task.send("one")
        await said(task, "one")
        kill_keeper(home)
        await task.send("two")
        await said(task, "two")
        kill_all_of_ours(home)
        folder = bb.home.attempt(task.id, task.record.attempt)
        job_input.send(folder, b"three\n")  # with nobody there but the job and its holder
        await said(task, "three")
        job_input.send_eof(folder)
        await keeper_comes(home)
        await task.wait(30)
        assert (task.state, task.exit_code) == (State.FAILED, 7)
        assert task.record.attempt == 1


@pytest.fixture(params=["1", "0"], ids=["cgroups", "no cgroups"])
def cgroups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_CGROUPS", request.param)


@pytest.mark.slow
@pytest.mark.usefixtures("cgroups")
async def test_x2_a_killed_holder_ends_its_job_as_killed_and_stop_ends_the_rest(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run("trap '' HUP; echo up; sleep 3600", pty=True)
        await said(task, "up")
        kill(holder_of(home, task))
        await task.wait(30)
        assert task.error is not None
        assert (task.state, task.error.kind) == (State.FAILED, ErrorKind.KILLED)
        assert task.record.leftovers > 0
        await task.stop(force=True)
        assert task.record.leftovers == 0
        assert members(home, task) == []


@pytest.mark.slow
async def test_a_killed_wrapper_leaves_a_terminal_that_can_be_used_and_stopped(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run("cat", pty=True)
        await task.send("one")
        await said(task, "one")
        assert task.record.pid is not None or await task.refresh()
        assert task.record.pid is not None
        holder = holder_of(home, task)
        os.kill(task.record.pid, signal.SIGKILL)
        await task.send("two")
        await said(task, "two")
        await task.stop()
        assert task.state is State.CANCELED
        assert not is_running(holder)
