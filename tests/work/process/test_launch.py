"""What a job gets from its caller, and what its caller gets back, through the real keeper (A2, A3).

Secrets of the caller's environment are on disk for the moment of the hand-over only.
"""

import asyncio
import contextlib
import json
import os
import resource
import stat
import sys
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, Session, State
from backburner.runtime.election import call_keeper
from tests.faults.homes import waiting_starts
from tests.faults.victims import kill_keeper, nobody_keeps
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

SECRET = "correct-horse-battery-staple-8d1f"

OF_THE_SHELL = {"PWD", "OLDPWD", "SHLVL", "_"}
"""What any shell sets for its commands."""


async def output_of(session: Session, command: str | list[str], **options: object) -> str:
    """Run a command to its end; what it wrote."""
    task = await session.run(command, **options)  # type: ignore[arg-type]
    await task.wait(60)
    assert task.state is State.SUCCEEDED, task.error
    return (await task.output(max_chars=None, raw=True)).text


def files_with(home: Path, text: str) -> list[str]:
    """Every file of the home, the record and its log included, in which the text occurs."""
    needle = text.encode()
    found: list[str] = []
    for folder, _, names in os.walk(home):
        for path in (Path(folder, name) for name in names):
            with contextlib.suppress(FileNotFoundError):  # a keeper has put it away meanwhile
                if stat.S_ISREG(path.lstat().st_mode) and needle in path.read_bytes():
                    found.append(str(path))
    return found


# Endings


async def test_a3_every_exit_code_comes_back(shared_home: Path) -> None:
    """0 to 255, each as it was, and none taken for a death by signal."""
    async with Backburner.open(shared_home) as bb:

        async def check(code: int) -> None:
            session = bb.session(f"s{code % 8}")
            task = await session.run(f"exit {code}")
            await task.wait(60)
            assert task.exit_code == code
            if code == 0:
                assert (task.state, task.error) == (State.SUCCEEDED, None)
            else:
                assert task.state is State.FAILED
                assert task.error is not None
                assert task.error.kind is ErrorKind.EXIT

        await asyncio.gather(*(check(code) for code in range(256)))


@pytest.mark.parametrize("name", ["KILL", "TERM", "HUP"])
async def test_a3_a_signal_from_outside_is_told_from_its_exit_code(
    shared_home: Path, name: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("s")
        task = await (await session.run(f"kill -{name} $$")).wait(60)
        assert (task.state, task.exit_code) == (State.FAILED, None)
        assert task.error is not None
        assert task.error.kind is ErrorKind.KILLED
        assert f"SIG{name}" in task.error.message


async def test_a3_a_crash_keeps_its_exit_code_and_names_its_signal(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await (await bb.session("s").run("kill -SEGV $$")).wait(60)
        assert (task.state, task.exit_code) == (State.FAILED, 139)
        assert task.error is not None
        assert task.error.kind is ErrorKind.EXIT
        assert "SIGSEGV" in task.error.message


async def test_a_command_that_is_not_found_in_a_line_is_exit_code_127(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await (await bb.session("s").run("no-such-program-here --help")).wait(60)
        assert (task.state, task.exit_code) == (State.FAILED, 127)
        assert "no-such-program-here" in (await task.output()).text


@pytest.mark.parametrize(
    ("command", "cwd", "message"),
    [
        (["no-such-program-here"], None, "command not found: no-such-program-here"),
        (["./missing"], None, "there is no program ./missing"),
        ("true", "no/such/folder", "there is no folder"),
    ],
)
async def test_what_cannot_start_says_why_and_is_told(
    shared_home: Path, command: str | list[str], cwd: str | None, message: str
) -> None:
    """E10: could not start is an ending as any other; the caller gets the task."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session(message)
        task = await session.run(command, cwd=cwd)
        assert task.state is State.FAILED
        assert task.error is not None
        assert task.error.kind is ErrorKind.SPAWN
        assert message in task.error.message
        assert [signal.task for signal in await session.told()] == [task.id]


async def test_a_folder_that_vanishes_before_the_start_is_a_failure_to_start(
    home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "short-lived"
    folder.mkdir()
    async with Backburner.open(home) as bb:
        with nobody_keeps(home):
            task = await bb.session("s").run("true", cwd=folder)
            folder.rmdir()
        call_keeper(bb.home)
        await task.wait(60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.SPAWN
        assert str(folder) in task.error.message


async def test_what_the_kernel_refuses_is_a_failure_to_start(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await (await bb.session("s").run(["true", "x" * 200_000])).wait(60)
        assert task.error is not None
        assert task.error.kind is ErrorKind.SPAWN


# What it inherits


async def test_the_callers_environment_arrives_whole(
    shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also names that are no identifiers, which plain shells drop, and values of any kind."""
    odd = {
        "npm_config_//registry.example/:_x": "1",
        "with.dot": "dots",
        "BASH_FUNC_greet%%": "() {  echo hello\n}",
        "LINES_": "one\ntwo\n",
        "EMPTY": "",
        "BYTES": "caf\udce9 \U0001f680",
        "QUOTES": """'"$(echo no)`\\""",
    }
    for name, value in odd.items():
        monkeypatch.setenv(name, value)
    expected = {
        **os.environ,
        "MORE": "given",
        "PYTHONUNBUFFERED": "1",
        "BACKBURNER_HOME": str(shared_home),
        "BACKBURNER_OWNER": "local",
        "BACKBURNER_SESSION": "chat",
    }
    program = "import json, os, sys; json.dump(dict(os.environ), sys.stdout)"
    async with Backburner.open(shared_home) as bb:
        text = await output_of(
            bb.session("chat"), [sys.executable, "-c", program], env={"MORE": "given"}
        )
        seen = json.loads(text)
        assert seen.pop("BACKBURNER_ATTEMPT") == "1"
        assert Path(seen.pop("BACKBURNER_REPORT")).parent.parent == shared_home / "tasks"
        for limit in ("BACKBURNER_ARTIFACT_LIMIT", "BACKBURNER_ARTIFACTS_LIMIT"):
            assert int(seen.pop(limit)) > 0
        task_id = seen.pop("BACKBURNER_TASK_ID")
        assert (await bb.session("chat").task(task_id)).id == task_id
    for name in OF_THE_SHELL:
        seen.pop(name, None)
        expected.pop(name, None)
    assert seen == expected


async def test_plain_names_arrive_through_the_plain_shell_too(
    shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if not name.isidentifier()]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PLAIN", "a b\nc 'd' $e")
    async with Backburner.open(shared_home) as bb:
        text = await output_of(bb.session("chat"), ["printenv", "PLAIN", "BACKBURNER_SESSION"])
    assert text == "a b\nc 'd' $e\nchat\n"


async def test_b6_what_a_command_starts_belongs_to_its_owner(shared_home: Path) -> None:
    """Or it would count against nobody, and reach into sessions of that name of others."""
    start = [sys.executable, "-m", "backburner.cli", "run", "--", "true"]
    async with Backburner.open(shared_home) as bb:
        ada = bb.session("chat", owner="ada")
        await output_of(ada, start, env={"BACKBURNER_OWNER": "bob"})
        child, parent = await ada.tasks()
        assert child.record.parent == parent.id
        await child.wait(timeout=60)


async def test_a_caller_can_have_python_buffered(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        text = await output_of(
            bb.session("s"), 'echo "[$PYTHONUNBUFFERED]"', env={"PYTHONUNBUFFERED": ""}
        )
    assert text == "[]\n"


async def test_python_prints_are_seen_while_it_runs(shared_home: Path) -> None:
    """A7: without PYTHONUNBUFFERED they would be seen at the end only."""
    async with Backburner.open(shared_home) as bb:
        program = "print('at once'); import time; time.sleep(3600)"
        task = await bb.session("s").run([sys.executable, "-c", program])

        async def seen() -> bool:
            return "at once" in (await task.output()).text

        await wait_until_async(seen)
        await task.stop(force=True)


async def test_it_runs_in_the_folder_it_was_told_and_else_in_the_callers(
    shared_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "-n a folder\nof two lines"
    odd.mkdir()
    monkeypatch.chdir(tmp_path)
    async with Backburner.open(shared_home) as bb:
        session = bb.session("s")
        assert await output_of(session, ["pwd"]) == f"{tmp_path}\n"
        assert await output_of(session, ["pwd"], cwd=odd) == f"{odd}\n"
        assert await output_of(session, ["pwd"], cwd=odd.name) == f"{odd}\n"


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o137])
async def test_it_has_the_callers_umask(shared_home: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        async with Backburner.open(shared_home) as bb:
            text = await output_of(bb.session("s"), "umask")
    finally:
        os.umask(before)
    assert int(text, 8) == mask


async def test_it_has_the_callers_limit_of_open_files(shared_home: Path) -> None:
    """The keeper raises its own, because it holds a descriptor for each job."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (777, before[1]))
    try:
        async with Backburner.open(shared_home) as bb:
            text = await output_of(bb.session("s"), "ulimit -Sn")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert text == "777\n"


async def test_standard_input_is_empty(shared_home: Path) -> None:
    """Programs that read it end, and do not hang."""
    async with Backburner.open(shared_home) as bb:
        assert await output_of(bb.session("s"), "cat; wc -c; readlink /proc/self/fd/0") == (
            "0\n/dev/null\n"
        )


async def test_it_has_no_descriptors_but_the_three(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        text = await output_of(bb.session("s"), ["ls", "/proc/self/fd"])
    assert text.split() == ["0", "1", "2", "3"]  # 3 is the folder that ls reads


async def test_standard_error_can_be_kept_apart(shared_home: Path) -> None:
    line = "echo out; echo err >&2; echo out again"
    async with Backburner.open(shared_home) as bb:
        session = bb.session("s")
        apart = await (await session.run(line, separate_stderr=True)).wait(60)
        chunk = await apart.output()
        assert (chunk.text, chunk.stderr_text) == ("out\nout again\n", "err\n")
        together = await (await session.run(line)).wait(60)
        chunk = await together.output()
        assert (chunk.text, chunk.stderr_text) == ("out\nerr\nout again\n", None)


async def test_words_are_not_interpreted_and_a_line_is_bash(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("s")
        words = ["printf", "%s|", "a b", "$HOME", "*", "", "-n"]
        assert await output_of(session, words) == "a b|$HOME|*||-n|"
        assert await output_of(session, "x=(1 2 3); echo ${#x[@]}") == "3\n"


# Secrets


async def test_the_hand_over_is_the_owners_only_and_gone_after_the_start(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D9's rule for the environment: nothing of it is on disk once the job has begun."""
    monkeypatch.setenv("INHERITED_SETTING", SECRET)
    before = os.umask(0)  # the mode must not depend on it
    try:
        async with Backburner.open(home) as bb:
            with nobody_keeps(home):
                task = await bb.session("s").run(
                    'echo "${#INHERITED_SETTING} ${#MY_TOKEN}"; sleep 3600',
                    env={"MY_TOKEN": SECRET},
                )
                assert waiting_starts(home) == [task.id]
                launches = home / "launches"
                assert launches.stat().st_mode & 0o777 == 0o600
                assert launches.parent.stat().st_mode & 0o777 == 0o700
                assert files_with(home, SECRET) == [str(launches)]
            call_keeper(bb.home)

            async def said() -> bool:
                return bool((await task.output()).text)

            await wait_until_async(said)
            assert (await task.output()).text == f"{len(SECRET)} {len(SECRET)}\n"
            # It is there until the job has the word to run, and so for a moment longer.
            await wait_until_async(lambda: waiting_starts(home) == [])
            assert files_with(home, SECRET) == []
            await task.stop(force=True)
            assert files_with(home, SECRET) == []
    finally:
        os.umask(before)


@pytest.mark.parametrize("how", ["stopped", "could not start", "over the limit", "conflict"])
async def test_no_secret_stays_where_the_job_never_began(
    home: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("INHERITED_SETTING", SECRET)
    monkeypatch.setenv("BACKBURNER_SHELL_PER_SESSION", "1")
    async with Backburner.open(home) as bb:
        session = bb.session("s")
        if how == "could not start":
            await session.run(["no-such-program-here"])
        else:
            with nobody_keeps(home):
                task = await session.run("true", id="chosen")
                if how == "over the limit":
                    with pytest.raises(Exception, match="limit"):
                        await session.run("true")
                if how == "conflict":
                    with pytest.raises(Exception, match="chosen"):
                        await bb.session("another").run("false", id="chosen")
                await task.stop()
        assert files_with(home, SECRET) == []


@pytest.mark.slow
async def test_no_secret_stays_where_the_keeper_was_killed_in_between(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst moment: the job was started, and its hand-over not yet deleted."""
    monkeypatch.setenv("INHERITED_SETTING", SECRET)
    async with Backburner.open(home) as bb:
        with nobody_keeps(home):
            task = await bb.session("s").run("echo $$; sleep 3600")
            content = (home / "launches").read_bytes()
        call_keeper(bb.home)

        async def said() -> bool:
            return bool((await task.output()).text)

        await wait_until_async(said)
        await wait_until_async(lambda: waiting_starts(home) == [])
        (home / "launches").write_bytes(content)
        kill_keeper(home)
        wait_until(lambda: files_with(home, SECRET) == [], message="it is still there")
        await task.stop(force=True)
