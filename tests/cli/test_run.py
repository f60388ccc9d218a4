"""`run`: starting, what is refused, following to the end, leaving alone."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import COMMAND, Program

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

TASK_KEYS = {
    "id", "session", "owner", "kind", "title", "state", "detail", "progress", "ready_at",
    "parked_at", "exit_code", "error", "summary", "result", "attempt", "pid", "created_at",
    "started_at", "finished_at", "max_runtime_s", "output", "paths", "leftovers", "signal", "links",
    "order", "wait", "allowance", "question", "artifacts", "usage",
}  # fmt: skip


def test_a2_it_prints_the_id_alone_and_the_task_is_there(backburner: Program) -> None:
    started = backburner("run", "--", "true")
    assert (started.code, started.err) == (0, "")
    assert started.id.startswith("bg_")
    assert backburner("ls", "-q").out == started.out


@pytest.mark.slow
def test_a2_what_was_asked_for_is_in_the_record(backburner: Program, tmp_path: Path) -> None:
    task = backburner(
        "run", "--json", "--title", "a title", "--max-runtime", "1h30m", "--cwd", str(tmp_path),
        "--env", "GREETING=a=b", "--env", "API_TOKEN=hush", "--separate-stderr", "--id", "mine",
        "--", "pwd; echo $GREETING $API_TOKEN; echo error >&2",
    ).json  # fmt: skip
    assert task.keys() == TASK_KEYS
    assert (task["id"], task["title"], task["max_runtime_s"]) == ("mine", "a title", 5400)
    assert (task["session"], task["owner"], task["kind"]) == ("test", "local", "shell")
    assert backburner("wait", "mine").code == 0
    logs = backburner("logs", "mine")
    assert logs.out == f"{tmp_path}\na=b hush\n"
    assert logs.err == "error\n"
    shown = backburner("show", "mine").out
    assert "GREETING, API_TOKEN" in shown
    assert "hush" not in shown.partition("output")[0]


@pytest.mark.parametrize(
    ("given", "limit"), [(None, 3600), ("0", None), ("none", None), ("90", 90), ("2d", 172800)]
)
def test_max_runtime_takes_durations(
    backburner: Program, given: str | None, limit: float | None
) -> None:
    option = [] if given is None else ["--max-runtime", given]
    started = backburner("run", "--json", "--cwd", "/nowhere", *option, "--", "true")
    assert started.json["max_runtime_s"] == limit


@pytest.mark.slow
def test_one_argument_is_a_line_and_several_are_words(backburner: Program) -> None:
    def output(*arguments: str) -> str:
        return backburner("run", "--wait", *arguments).out

    assert output("--", "echo a  b | tr a c") == "c b\n"
    assert output("--", "echo", "a  b", "|", "tr") == "a  b | tr\n"
    assert output("echo", "hi", "--wait", "--json") == "hi --wait --json\n"
    assert output("--title", "x", "printf", "%s.", "-n", "--", "-x") == "-n.--.-x."


@pytest.mark.slow
def test_e12_the_same_id_again_starts_nothing_new(backburner: Program, tmp_path: Path) -> None:
    line = f"echo once >>{tmp_path}/count"
    for _ in range(2):
        assert backburner("run", "--id", "deploy-42", "--wait", "--", line).code == 0
    assert (tmp_path / "count").read_text() == "once\n"
    conflict = backburner("run", "--id", "deploy-42", "--", "something else")
    assert conflict.code == 2
    assert "deploy-42" in conflict.err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--cwd", "/nowhere/at/all", "--", "true"], "there is no folder /nowhere/at/all"),
        (["--", "no-such-command-anywhere", "x"], "command not found: no-such-command-anywhere"),
        (["--", "/etc/passwd", "x"], "/etc/passwd may not be executed"),
    ],
)
def test_what_cannot_start_is_recorded_and_said(
    backburner: Program, arguments: list[str], reason: str
) -> None:
    failed = backburner("run", *arguments)
    assert failed.code == 1
    assert failed.err == f"backburner: failed to start: {reason}\n"
    task = backburner("show", "--json", failed.out.strip()).json
    assert (task["state"], task["error"]) == ("failed", {"kind": "spawn", "message": reason})


@pytest.mark.slow
def test_wait_passes_the_output_and_the_code_through(backburner: Program) -> None:
    done = backburner(
        "run",
        "--wait",
        "--separate-stderr",
        "--",
        "printf '\\033[1mbold\\n'; echo error >&2; exit 7",
    )
    assert done.code == 7
    assert done.out == "\x1b[1mbold\n"  # as it was written: it is the user's own command
    assert done.err.startswith("error\nbackburner: ")
    assert "failed: exit code 7" in done.err
    assert backburner("run", "--wait", "--", "echo fine").err == ""


@pytest.mark.slow
def test_a5_wait_says_how_a_task_without_a_code_ended(backburner: Program) -> None:
    late = backburner("run", "--wait", "--max-runtime", "0.2", "--", "sleep 60")
    assert late.code == 1
    assert "timed out: it passed its maximum run time" in late.err
    assert backburner("run", "--wait", "--cwd", "/nowhere", "--", "true").code == 1


@pytest.mark.slow
def test_wait_prints_json_lines(backburner: Program) -> None:
    lines = backburner("run", "--wait", "--json", "--", "echo out; exit 3")
    assert lines.code == 3
    first, *pieces, last = lines.json_lines
    assert first["id"] == last["id"]
    assert "".join(piece["text"] for piece in pieces) == "out\n"
    assert (last["state"], last["exit_code"]) == ("failed", 3)


@pytest.mark.slow
def test_x2_ctrl_c_leaves_the_task_alone(backburner: Program, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with backburner.started("run", "--wait", "--", f"echo begun; cat {fifo}; exit 5") as running:
        running.read_until("begun\n")
        left = running.interrupt()
    (task,) = backburner("ls", "--json").json
    assert left.code == 130
    assert left.err.startswith(f"backburner: left alone: {task['id']} goes on\n")
    assert task["state"] == "running"
    fifo.write_text("freed\n")
    assert backburner("wait", task["id"]).code == 5
    assert backburner("logs", task["id"]).out == "begun\nfreed\n"


@pytest.mark.slow
def test_a_stopped_task_ends_the_wait_with_6(backburner: Program) -> None:
    with backburner.started(
        "run", "--wait", "--id", "endless", "--", "echo begun; cat /dev/zero >/dev/null"
    ) as running:
        running.read_until("begun\n")
        assert backburner("stop", "endless").code == 0
        stopped = running.end()
    assert stopped.code == 6
    assert "was stopped" in stopped.err


@pytest.mark.slow
def test_x3_a_reader_that_leaves_does_not_end_the_task(backburner: Program) -> None:
    line = f"{' '.join(COMMAND)} run --id many --wait -- 'seq 1 300000; exit 3' | head -1"
    done = subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"], capture_output=True, check=False
    )
    # 141 when it noticed; 3 where the whole output fitted into the pipe first.
    assert done.returncode in {3, 141}
    assert b"Traceback" not in done.stderr
    assert backburner("wait", "many").code == 3


def test_bytes_that_are_no_text_reach_the_command(home: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "run", "--wait", "--", b"printf %s \xff | od -An -tx1"],
        capture_output=True,
        check=True,
    )
    assert done.stdout.strip() == b"ff"


@pytest.mark.slow
def test_the_program_ends_when_it_is_told_to(backburner: Program) -> None:
    with backburner.started("run", "--wait", "--", "echo begun; sleep 60") as running:
        running.read_until("begun\n")
        running.process.send_signal(signal.SIGTERM)
        assert running.end().code == -signal.SIGTERM
    assert backburner("stop", "--all").code == 0
