"""X5: a script says how far it is, what it does, what came out; nothing lost, nothing twice."""

import itertools
import json
import os
import signal
from pathlib import Path

import pytest

from backburner import Backburner, ErrorKind, Event, EventKind, Settings, State, Task
from backburner.work.report import LINE_MAX_BYTES
from tests.faults.record import rows
from tests.faults.victims import (
    has_begun,
    kill_all_of_ours,
    kill_keeper,
    sleepers,
    unique_seconds,
)
from tests.runtime.scripts import PROGRAM
from tests.waiting import wait_until, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


async def ended(bb: Backburner, line: str) -> Task:
    task = await bb.session("s").run(line)
    return await task.wait(60)


async def events(task: Task, *kinds: EventKind) -> list[Event]:
    return [event async for event in task.events(follow=False) if event.kind in kinds]


def report_of(task: Task) -> Path:
    return Path(task.document()["paths"]["dir"]) / "report"


async def test_x5_everything_that_a_script_can_say(shared_home: Path, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("hello")
    async with Backburner.open(shared_home) as bb:
        task = await ended(
            bb,
            f"{PROGRAM} status 'compiling: a \"b\"' && {PROGRAM} progress 3 10 --unit files"
            f" --label=main.c && {PROGRAM} result '{{\"passed\": 42}}' &&"
            f" {PROGRAM} artifact {tmp_path}/out.txt",
        )
        assert (task.state, (await task.output()).text) == (State.SUCCEEDED, "")
        document = task.document()
        assert document["detail"] == 'compiling: a "b"'
        assert document["progress"] == {
            "current": 3, "total": 10, "unit": "files", "label": "main.c",
        }  # fmt: skip
        assert document["result"] == task.result == {"passed": 42}
        (artifact,) = document["artifacts"]
        assert (artifact["name"], artifact["bytes"]) == ("out.txt", 5)
        assert Path(artifact["path"]).read_text() == "hello"
        (event,) = await events(task, EventKind.ARTIFACT)
        assert event.data == {"name": "out.txt", "bytes": 5}
        # E4: the result is on disk, too.
        assert json.loads(Path(document["paths"]["result"]).read_text()) == {
            "status": "succeeded", "exit_code": 0, "result": {"passed": 42},
        }  # fmt: skip
        assert report_of(task).stat().st_mode & 0o777 == 0o600
        folder = Path(document["paths"]["dir"])
        assert await bb.prune(0) >= 1
        assert not folder.exists(), "artifacts go with their task"


async def test_x5_the_same_in_plain_sh_and_awk(shared_home: Path) -> None:
    """Without our program: a documented place, and lines of JSON."""
    async with Backburner.open(shared_home) as bb:
        task = await ended(
            bb,
            """mkdir -p "${BACKBURNER_REPORT%/*}/artifacts"
            echo data >"${BACKBURNER_REPORT%/*}/artifacts/rows.csv"
            echo '{"artifact": "rows.csv"}' >>"$BACKBURNER_REPORT"
            echo '{"status": "counting"}' >>"$BACKBURNER_REPORT"
            seq 1 1000 | awk '{ sum += $1
                printf "{\\"progress\\": {\\"current\\": %d, \\"total\\": 1000}}\\n", NR \\
                    >>ENVIRON["BACKBURNER_REPORT"] }
            END { printf "{\\"result\\": {\\"sum\\": %d}}", sum >>ENVIRON["BACKBURNER_REPORT"] }'
            """,
        )
        assert task.state is State.SUCCEEDED, (await task.output()).text
        assert task.result == {"sum": 500500}, "also without a line break at its end"
        assert task.record.detail == "counting"
        assert task.record.progress is not None
        assert (task.record.progress.current, task.record.progress.total) == (1000, 1000)
        assert [each["name"] for each in task.document()["artifacts"]] == ["rows.csv"]


async def test_x5_a_failed_and_a_stopped_task_keep_their_results(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await ended(bb, "echo '{\"result\": [1]}' >>$BACKBURNER_REPORT; exit 3")
        assert (task.exit_code, task.result) == (3, [1])
        line = f"echo '{{\"result\": [2]}}' >>$BACKBURNER_REPORT; sleep {unique_seconds()}"
        task = await bb.session("s").run(line)
        await wait_until_async(lambda: has_reported(task))
        await task.stop()
        assert (task.state, task.result) == (State.CANCELED, [2])
        assert json.loads(Path(task.document()["paths"]["result"]).read_text())["result"] == [2]


async def has_reported(task: Task) -> bool:
    """Whether it has written something: the file is there before that."""
    return report_of(task).exists() and report_of(task).stat().st_size > 0


async def test_x5_what_is_said_is_seen_at_once(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        line = f'echo \'{{"status": "one"}}\' >>$BACKBURNER_REPORT; sleep {unique_seconds()}'
        task = await bb.session("s").run(line)

        async def says() -> bool:
            return (await task.refresh()).record.detail == "one"

        await wait_until_async(says)
        assert task.state is State.RUNNING
        await task.stop(force=True)


@pytest.mark.slow
async def test_x5_many_processes_at_once_lose_nothing(shared_home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    async with Backburner.open(shared_home) as bb:
        task = await ended(
            bb,
            f"for i in $(seq 1 24); do {PROGRAM} artifact --name $i {tmp_path}/file &"
            f" {PROGRAM} status $i & {PROGRAM} progress $i 24 & done; wait;"
            f" {PROGRAM} result 24",
        )
        assert task.state is State.SUCCEEDED, (await task.output()).text
        assert task.result == 24
        added = await events(task, EventKind.ARTIFACT)
        assert sorted(int(event.data["name"]) for event in added) == list(range(1, 25))
        lines = [json.loads(line) for line in report_of(task).read_text().splitlines()]
        assert len(lines) == 3 * 24 + 1
        assert {line["status"] for line in lines if "status" in line} == {
            str(number) for number in range(1, 25)
        }


@pytest.mark.slow
async def test_x5_a_tight_loop_makes_few_events_and_the_last_word_counts(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await ended(
            bb,
            "i=0; while [ $i -lt 30000 ]; do i=$((i + 1));"
            ' echo "{\\"progress\\": {\\"current\\": $i}}" >>$BACKBURNER_REPORT; done',
        )
        assert task.record.progress is not None
        assert task.record.progress.current == 30000
        took = ((task.record.finished_at or 0) - (task.record.started_at or 0)) / 1e6
        assert len(await events(task, EventKind.PROGRESS)) <= 10 * took + 3


@pytest.mark.slow
@pytest.mark.parametrize("who", ["the keeper", "everything of ours"])
async def test_x5_a_killed_keeper_loses_nothing_and_takes_nothing_twice(
    home: Path, who: str
) -> None:
    """kill -9 in the middle, again and again, while a script adds one artifact after the other."""
    line = (
        'cd "${BACKBURNER_REPORT%/*}"; mkdir artifacts; i=0; while [ $i -lt 300 ]; do'
        " i=$((i + 1)); : >artifacts/$i;"
        ' echo "{\\"artifact\\": \\"$i\\"}" >>report; echo "{\\"status\\": \\"s$i\\"}" >>report;'
        ' sleep 0.01; done; echo \'{"result": "all"}\' >>report'
    )
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(line)
        wait_until(report_of(task).exists)
        for _ in range(4):
            if who == "the keeper":
                kill_keeper(home)
            else:
                kill_all_of_ours(home)
                await bb.tasks.see_to_keeper()
        await task.wait(60)
        names = [event.data["name"] for event in await events(task, EventKind.ARTIFACT)]
        assert names == [str(number) for number in range(1, 301)]
        assert (task.result, task.record.detail) == ("all", "s300")


async def test_x5_what_was_said_while_nobody_kept_the_home_is_heard(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(
            "until [ -e go ]; do sleep 0.01; done;"
            ' echo \'{"status": "late"}\' >>$BACKBURNER_REPORT;'
            " echo '{\"result\": 7}' >>$BACKBURNER_REPORT",
            cwd=home,
        )

        # It has the word: one whose keeper dies between its claim and that does not begin.
        wait_until(lambda: has_begun(bb.home.attempt(task.id, 1)))
        kill_all_of_ours(home)
        (home / "go").touch()
        wait_until(lambda: report_of(task).exists() and b"7" in report_of(task).read_bytes())
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert (task.state, task.result, task.record.detail) == (State.SUCCEEDED, 7, "late")


# What is wrong

_LONG_LINE = f"(head -c {LINE_MAX_BYTES * 2} /dev/zero | tr '\\0' x; echo) >>$BACKBURNER_REPORT"
_LARGE_RESULT = (
    "(printf '{\"result\": \"'; head -c 1100000 /dev/zero | tr '\\0' x; echo '\"}')"
    " >>$BACKBURNER_REPORT"
)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("echo garbage >>$BACKBURNER_REPORT", "a line is no JSON"),
        ("echo '{\"frob\": 1}' >>$BACKBURNER_REPORT", "'frob'"),
        ("printf '\\0\\1\\377\\n' >>$BACKBURNER_REPORT", "a line is no JSON"),
        ('echo \'{"artifact": "none"}\' >>$BACKBURNER_REPORT', "artifacts has no file 'none'"),
        (_LONG_LINE, "a line is longer than"),
        (_LARGE_RESULT, "the result is longer than 1024 KiB"),
    ],
    ids=["no JSON", "unknown key", "binary", "no such artifact", "long line", "large result"],
)
async def test_x5_what_is_wrong_is_noted_once_and_the_rest_goes_on(
    shared_home: Path, wrong: str, told: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await ended(
            bb,
            f'{wrong}; {wrong}; echo \'{{"status": "fine"}}\' >>$BACKBURNER_REPORT;'
            " echo '{\"result\": 1}' >>$BACKBURNER_REPORT",
        )
        assert (task.state, task.result, task.record.detail) == (State.SUCCEEDED, 1, "fine")
        details = [event.data["detail"] for event in await events(task, EventKind.DETAIL)]
        (noted,) = [text for text in details if text.startswith("report: ")]
        assert told in noted


@pytest.mark.parametrize(
    "obstacle",
    [
        "mkfifo $BACKBURNER_REPORT",
        "mkdir $BACKBURNER_REPORT",
        "ln -s /dev/zero $BACKBURNER_REPORT",
        "ln -s /etc/passwd $BACKBURNER_REPORT",
    ],
)
async def test_x5_what_stands_in_the_place_of_the_report_is_not_followed(
    shared_home: Path, obstacle: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await ended(bb, f"{obstacle}; {PROGRAM} status lost; {PROGRAM} result 1; sleep 0.2")
        assert task.state is State.SUCCEEDED
        assert task.result is None
        details = [event.data["detail"] for event in await events(task, EventKind.DETAIL)]
        assert len(details) == 1
        assert details[0].startswith("report: it ")


@pytest.mark.slow
async def test_x3_a_job_that_floods_its_report_costs_neither_disk_nor_the_keeper(
    home: Path, tmp_path: Path
) -> None:
    """Half a gigabyte of status lines, ten times as fast as it can, and a word at the end."""
    async with Backburner.open(home) as bb:
        other = await bb.session("s").run(f"sleep {unique_seconds()}")
        task = await bb.session("s").run(
            'line=\'{"status": "0123456789012345678901234567890123456789"}\';'
            ' for i in $(seq 10); do yes "$line" | head -c 50000000 | grep . >>$BACKBURNER_REPORT;'
            " touch written$i; until [ -e go$i ]; do sleep 0.02; done; done;"
            ' echo \'{"result": "the end"}\' >>$BACKBURNER_REPORT',
            cwd=tmp_path,
        )

        def is_freed() -> bool:
            return report_of(task).stat().st_blocks * 512 < 40_000_000

        for number in range(1, 11):
            await wait_until_async((tmp_path / f"written{number}").exists)
            await wait_until_async(is_freed, message="its report takes room on the disk")
            (tmp_path / f"go{number}").touch()
        assert (await task.wait(30)).result == "the end"
        assert (await other.stop(force=True)).state is State.CANCELED


async def test_x5_a_nested_task_reports_for_itself(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        task = await ended(
            bb,
            f"{PROGRAM} status outer;"
            f" {PROGRAM} run --id nested-$BACKBURNER_TASK_ID --wait -- '{PROGRAM} status inner'",
        )
        nested = await bb.session("s").task(f"nested-{task.id}")
        assert (task.record.detail, nested.record.detail) == ("outer", "inner")


async def test_x5_limits_of_artifacts_are_those_of_the_application(
    shared_home: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    settings = Settings(artifact_limit=99)
    async with Backburner.open(shared_home, settings=settings) as bb:
        task = await ended(bb, f"{PROGRAM} artifact {tmp_path}/file")
        assert task.exit_code == 5
        assert "larger than 99 bytes" in (await task.output()).text
        assert task.document()["artifacts"] == []


@pytest.mark.slow
async def test_x3_what_a_task_left_running_cannot_fill_the_disk_with_reports(home: Path) -> None:
    async with Backburner.open(home) as bb:
        task = await ended(
            bb,
            "(while sleep 0.01; do head -c 300000 /dev/zero | tr '\\0' x >>$BACKBURNER_REPORT;"
            " done) >/dev/null 2>&1 &",
        )
        assert task.record.leftovers
        sizes: list[int] = []

        def cut_twice() -> bool:
            sizes.append(report_of(task).stat().st_size)
            return sum(a > b for a, b in itertools.pairwise(sizes)) >= 2

        await wait_until_async(cut_twice)
        await task.stop(force=True)


@pytest.mark.slow
async def test_x5_what_was_said_before_a_reboot_is_heard_after_it(home: Path) -> None:
    seconds = unique_seconds()
    async with Backburner.open(home) as bb:
        task = await bb.session("s").run(f"sleep {seconds}")
        wait_until(lambda: sleepers(seconds))
        kill_all_of_ours(home)
        report_of(task).write_text('{"status": "before"}\n{"result": 1}\n')
        await task.refresh()
        assert task.record.pid is not None
        os.killpg(task.record.pid, signal.SIGKILL)
        wait_until(lambda: not sleepers(seconds))
    rows(home, "UPDATE task SET boot_id = 'another boot' WHERE boot_id IS NOT NULL")
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").task(task.id)).wait(30)
        assert task.error is not None
        assert task.error.kind is ErrorKind.ORPHANED
        assert (task.record.detail, task.result) == ("before", 1)
