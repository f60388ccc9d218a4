"""X4: ready, not just started: by output, port, file and HTTP; and those that never are."""

import sys
import time
from pathlib import Path

import pytest

from backburner import (
    Backburner,
    ErrorKind,
    NeverReady,
    SignalKind,
    State,
    TimeIsUp,
    UsageError,
)
from backburner.sync import Backburner as SyncBackburner
from tests.runtime.watching.told import events, texts, told, until_told
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@pytest.mark.parametrize(
    "line",
    [
        "echo now listening on 80",
        r"printf '\033[1;32mlistening\033[0m on 80\n'",
        "printf 'listening on 80'",  # a prompt, without an end of line
        "seq 100000; echo listening on 80; seq 100000",
        r"printf '10%%\r90%%\rlistening on\r'",
        "head -c 100000 /dev/zero | tr '\\0' x; echo listening on",
    ],
)
async def test_x4_a_line_of_its_output_makes_it_ready(shared_home: Path, line: str) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(line)
        task = await session.run(f"{line}; exec sleep 60", ready_output="listening on", title="srv")
        assert task.record.ready_at is None
        await task.wait(30, until="ready")
        assert task.state is State.RUNNING
        assert task.record.ready_at is not None
        (signal,) = await told(session, SignalKind.READY)
        assert signal["key"] == f"{task.id}:ready:1"
        assert signal["text"].startswith(f"srv ({task.id}) is ready: it printed: ")
        assert "listening on" in signal["data"]["line"] or "xxx" in signal["data"]["line"]
        assert len(signal["text"]) < 300
        await task.stop(force=True)
        assert len(await told(session, SignalKind.READY)) == 1
        assert await texts(session, SignalKind.CANCELED)


async def test_x4_standard_error_apart_is_looked_at_too(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("stderr").run(
            "echo up >&2; exec sleep 60", ready_output="^up$", separate_stderr=True
        )
        await task.wait(30, until="ready")
        await task.stop(force=True)


async def test_x4_a_server_is_ready_when_it_listens_on_its_port(
    shared_home: Path, free_port: int, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("port")
        server = f"{sys.executable} -m http.server {free_port} --bind 127.0.0.1"
        task = await session.run(server, ready_port=free_port, cwd=tmp_path)
        await task.wait(30, until="ready")
        assert await texts(session, SignalKind.READY) == [
            f"is ready: it listens on port {free_port}"
        ]

        thief = await session.run("sleep 60", ready_port=free_port)
        await wait_until_async(lambda: events(thief, "detail"))
        with pytest.raises(TimeIsUp, match="is not ready after"):
            await thief.wait(0.3, until="ready")
        assert "another program has it" in ((await thief.refresh()).record.detail or "")
        await thief.stop(force=True)
        await task.stop(force=True)
        first, second = await texts(session, SignalKind.CANCELED)
        assert first.startswith("was stopped after ")
        assert first.endswith(", before it was ready")
        assert not second.endswith(", before it was ready")


async def test_x4_x2_a_daemon_of_the_job_is_the_jobs_own(
    shared_home: Path, free_port: int, redis_server: Path, tmp_path: Path
) -> None:
    """It forked twice, left its session, closed what it had open and has another title."""
    async with Backburner.open(shared_home) as bb:
        line = f"{redis_server} --port {free_port} --save '' --daemonize yes; exec sleep 60"
        task = await bb.session("daemon").run(line, ready_port=free_port, cwd=tmp_path)
        await task.wait(30, until="ready")
        await task.stop(force=True)


async def test_x4_a_server_is_ready_when_it_answers(
    shared_home: Path, free_port: int, tmp_path: Path
) -> None:
    (tmp_path / "health").write_text("fine")
    async with Backburner.open(shared_home) as bb:
        address = f"http://127.0.0.1:{free_port}/health"
        server = f"sleep 0.2; exec {sys.executable} -m http.server {free_port} --bind 127.0.0.1"
        task = await bb.session("http").run(server, ready_http=address, cwd=tmp_path)
        await task.wait(30, until="ready")
        missing = await bb.session("http").run(
            "sleep 60", ready_http=f"http://127.0.0.1:{free_port}/nothing"
        )
        with pytest.raises(TimeIsUp):
            await missing.wait(0.3, until="ready")
        await missing.stop(force=True)
        await task.stop(force=True)
        (seen,) = await events(task, "ready")
        assert seen["text"] == f"{address} answered 200"


async def test_x4_a_file_relative_to_its_folder_makes_it_ready(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("file")
        line = "sleep 0.1; mkdir run; sleep 0.1; echo 1 >run/new; mv run/new run/ready; sleep 60"
        task = await session.run(line, ready_file="run/ready", cwd=tmp_path)
        await task.wait(30, until="ready")
        await task.stop(force=True)

        stale = await session.run("sleep 60", ready_file="run/ready", cwd=tmp_path)
        await wait_until_async(lambda: events(stale, "detail"))
        assert (await stale.refresh()).record.ready_at is None
        (tmp_path / "run" / "ready").write_text("2")
        await stale.wait(30, until="ready")
        await stale.stop(force=True)


async def test_x4_what_makes_it_ready_at_its_very_end_counts(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("end")
        for started in (
            await session.run("printf up; exit 3", ready_output="up"),
            await session.run("touch up; exit 3", ready_file="up", cwd=tmp_path),
        ):
            task = await started.wait(30)
            assert (task.exit_code, task.record.ready_at is None) == (3, False)
            assert task.error is not None
            assert task.error.message == "exit code 3"
            assert (await task.wait(until="ready")).state is State.FAILED


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("echo starting; exit 3", 3, "failed: exit code 3 after "),
        ("true", 0, "finished after "),
        ("kill -9 $$", None, "was killed: SIGKILL from outside"),
    ],
)
async def test_x4_a_job_that_dies_before_it_is_ready_says_so(
    shared_home: Path, line: str, code: int | None, said: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(f"dies {line}")
        task = await session.run(line, ready_output="listening")
        with pytest.raises(NeverReady, match="ended before it was ready") as caught:
            await task.wait(30, until="ready")
        assert caught.value.code == "never_ready"
        await task.refresh()
        assert (task.exit_code, task.record.ready_at) == (code, None)
        assert "before it was ready" in (
            task.error.message if task.error else task.record.summary or ""
        )
        (signal,) = await session.told()
        text = signal.text.partition(") ")[2]
        assert text.startswith(said)
        assert text.endswith(", before it was ready")
        with pytest.raises(NeverReady):
            await task.wait(until="ready")


async def test_x4_what_could_not_start_was_not_too_early(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("spawn").run(["/no/such/program"], ready_port=80)
        assert task.error is not None
        assert task.error.kind is ErrorKind.SPAWN
        assert "ready" not in task.error.message
        with pytest.raises(NeverReady):
            await task.wait(until="ready")


async def test_x4_ready_can_only_be_waited_for_where_there_is_a_condition(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await bb.session("none").run("true", match="x")
        with pytest.raises(UsageError, match="no condition") as caught:
            await task.wait(until="ready")
        assert "--ready-port" in caught.value.remedy
        with pytest.raises(UsageError, match="cannot be waited for"):
            await task.wait(until="tea")  # pyright: ignore[reportArgumentType]
        await task.wait(30)


async def test_x4_the_same_id_needs_the_same_condition_and_a_rerun_has_it(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("again")
        plain = await (await session.run("echo up", id="plain")).wait(30)
        assert "watch" not in plain.record.spec
        task = await session.run("echo up", id="watched", ready_output="up", silence=60)
        assert (await session.run("echo up", id="watched", ready_output="up", silence=60)).id
        again = await (await task.wait(30)).rerun()
        assert again.record.spec == task.record.spec
        await again.wait(30, until="ready")
        await again.wait(30)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ready_output": "("},
        {"match": "(?<=a)b"},
        {"ready_port": 0},
        {"ready_http": "nonsense"},
        {"ready_port": 80, "ready_file": "a"},
        {"silence": 0.1},
    ],
)
async def test_x4_what_is_refused_leaves_nothing(
    shared_home: Path, wrong: dict[str, object]
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("refused")
        with pytest.raises(UsageError):
            await session.run("true", **wrong)  # pyright: ignore[reportArgumentType]
        assert await session.tasks() == []


def test_x4_the_same_without_await(shared_home: Path) -> None:
    with SyncBackburner.open(shared_home) as bb:
        session = bb.session("sync")
        task = session.run("echo up; exec sleep 60", ready_output="up")
        assert task.wait(30, until="ready").record.ready_at is not None
        task.stop(force=True)
        early = session.run("true", ready_file="never")
        with pytest.raises(NeverReady):
            early.wait(30, until="ready")


@pytest.mark.slow
async def test_x4_a_further_attempt_becomes_ready_anew(shared_home: Path, tmp_path: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("attempts")
        line = "echo up; if test -e twice; then exec sleep 60; fi; touch twice; exit 1"
        task = await session.run(line, ready_output="up", retries=1, cwd=tmp_path)
        signals = await until_told(session, SignalKind.READY, 2)
        assert [signal["key"] for signal in signals] == [
            f"{task.id}:ready:1",
            f"{task.id}:ready:2",
        ]
        await (await task.refresh()).stop(force=True)


def test_x4_readiness_is_seen_soon(shared_home: Path) -> None:
    """By an event, and not by the next round of a clock: one of several, on a busy machine."""
    with SyncBackburner.open(shared_home) as bb:
        session = bb.session("soon")
        took: list[float] = []
        while min(took, default=1) > 0.3:  # some 30 ms where the machine is not busy
            assert len(took) < 10, took
            task = session.run("read -r; echo up; exec sleep 60", ready_output="up", stdin=True)
            wait_until(lambda task=task: task.refresh().state is State.RUNNING)
            began = time.monotonic()
            task.send("now")
            task.wait(30, until="ready")
            took.append(time.monotonic() - began)
            task.stop(force=True)
