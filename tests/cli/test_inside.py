"""X5: the commands for scripts inside a task: what they add and refuse, also outside of one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backburner.cli import inside, main
from tests.cli.golden import Golden
from tests.cli.program import COMMAND, Program, Result
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


@pytest.fixture
def report(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As in a job, whose keeper is not there."""
    folder = home / "tasks" / "bg_x.1"
    folder.mkdir(parents=True)
    monkeypatch.setenv("BACKBURNER_TASK_ID", "bg_x")
    monkeypatch.setenv("BACKBURNER_REPORT", str(folder / "report"))
    return folder / "report"


def lines(report: Path) -> list[Any]:
    return [json.loads(line) for line in report.read_text().splitlines()]


def test_x5_each_call_adds_one_line(backburner: Program, report: Path, tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("x")
    calls = [
        ("status", "compiling"),
        ("status", 'é "quoted"\nand more'),
        ("progress", "3", "10"),
        ("progress", "--unit", "files", "1.5", "--label=x=y"),
        ("result", '{"a": [1, "é"]}'),
        ("result", "null"),
        ("result", "-3"),
        ("artifact", f"{tmp_path}/a b.txt"),
        ("artifact", "--name", "other", f"{tmp_path}/a b.txt"),
    ]
    for call in calls:
        assert backburner(*call) == Result(0, "", "")
    assert backburner("result", "-", stdin="[1]\n") == Result(0, "", "")
    assert lines(report) == [
        {"status": "compiling"},
        {"status": 'é "quoted"\nand more'},
        {"progress": {"current": 3, "total": 10}},
        {"progress": {"current": 1.5, "unit": "files", "label": "x=y"}},
        {"result": {"a": [1, "é"]}},
        {"result": None},
        {"result": -3},
        {"artifact": "a b.txt"},
        {"artifact": "other"},
        {"result": [1]},
    ]
    assert report.stat().st_mode & 0o777 == 0o600


MISTAKES = [
    ("status",),
    ("status", ""),
    ("status", "two", "words"),
    ("status", "--frob"),
    ("progress",),
    ("progress", "x"),
    ("progress", "--", "-1"),
    ("progress", "nan"),
    ("progress", "1e999", "10"),
    ("progress", "3", "0"),
    ("progress", "3", "ten"),
    ("progress", "3", "10", "11"),
    ("progress", "9" * 400, "10"),
    ("result",),
    ("result", "{"),
    ("result", "NaN"),
    ("result", "hello"),
    ("result", "1e999"),
    ("result", "[" * 100_000),
    ("artifact",),
    ("artifact", "/"),
    ("artifact", "/dev/null"),
    ("ask",),
    ("ask", " "),
    ("ask", "x" * 8001),
    ("ask", "--timeout", "soon", "?"),
    ("ask", "--timeout", "?"),
]


def test_x5_a_mistake_is_explained_and_nothing_changes(
    report: Path,
    golden: Golden,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process: to start one for each takes long."""
    said: list[str] = []
    for call in MISTAKES:
        monkeypatch.setattr(sys, "argv", ["backburner", *call])
        assert main() == 2, call
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("backburner: ")
        assert len(err) < 700
        if len(" ".join(call)) < 60:
            said.append(f"$ backburner {' '.join(call)}\n{err}")
    golden.check("inside-mistakes", "\n".join(said))
    assert os.listdir(report.parent) == []


def test_x5_other_refusals_have_their_exit_status(
    backburner: Program, report: Path, tmp_path: Path
) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(10 * 2**30)
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0)
    assert backburner("artifact", str(tmp_path / "none")).code == 3
    assert backburner("artifact", str(secret), privileged=False).code == 4
    done = backburner("artifact", str(huge))
    assert done.code == 5
    assert "BACKBURNER_ARTIFACT_LIMIT" in done.err
    done = backburner("result", "-", stdin=json.dumps("x" * 2**20))
    assert done.code == 5
    assert "artifact" in done.err
    assert os.listdir(report.parent) == []


def test_x5_what_cannot_be_written_is_told(backburner: Program, report: Path) -> None:
    """As on a full disk: a pipe that nobody reads takes nothing either, and nobody waits for it."""
    os.mkfifo(report)
    done = backburner("status", "x")
    assert (done.code, done.out) == (1, "")
    assert "could not be reported" in done.err


# Outside of a task


@pytest.mark.parametrize(
    "call", [("status", "compiling"), ("progress", "3", "10", "--unit", "files"), ("result", "[1]")]
)
@pytest.mark.parametrize("where", ["nowhere", "in a task that was forgotten"])
def test_x5_outside_of_a_task_it_does_no_harm(
    backburner: Program,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: tuple[str, ...],
    where: str,
) -> None:
    if where != "nowhere":
        monkeypatch.setenv("BACKBURNER_REPORT", str(home / "tasks" / "gone" / "report"))
    done = backburner(*call)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"backburner: not in a job; {call[0]}: {' '.join(call[1:])}\n"
    assert os.listdir(home) == []


def test_x5_an_artifact_outside_of_a_task_is_only_looked_at(
    backburner: Program, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text("x")
    done = backburner("artifact", str(tmp_path / "a"))
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("backburner: not in a job; artifact: ")
    assert backburner("artifact", str(tmp_path / "b")).code == 3
    assert os.listdir(home) == []


def test_x5_a_question_outside_of_a_task_is_asked_in_the_terminal(backburner: Program) -> None:
    with backburner.in_terminal("ask", "Which colour?") as terminal:
        terminal.read_until("Which colour?")
        os.write(terminal._fd, b"blue\n")  # pyright: ignore[reportPrivateUsage]
        assert terminal.read_to_end().endswith("blue\nblue\n")
        assert terminal.process.returncode == 0
    done = backburner("ask", "Which colour?")
    assert done.code == 2
    assert "neither a job nor a terminal" in done.err
    assert "backburner run" in done.err


def test_x5_only_in_a_task_of_this_home_or_session(
    backburner: Program, report: Path, tmp_path: Path
) -> None:
    assert backburner("status", "--home", str(tmp_path / "other"), "x").err
    assert backburner("status", "--session", "other", "x").err
    assert not report.exists()
    home = str(report.parent.parent.parent)
    assert not backburner("status", "--home", home, "--session", "test", "x").err
    assert lines(report) == [{"status": "x"}]


def test_x5_what_was_reported_as_json(backburner: Program, report: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert backburner("progress", "1", "--json").json == {
        "progress": {"current": 1},
        "in_job": True,
    }
    assert backburner("artifact", "--json", str(tmp_path / "a")).json == {
        "name": "a",
        "bytes": 1,
        "path": str(report.parent / "artifacts" / "a"),
    }


# Quick


@pytest.mark.parametrize("call", ["status x", "progress 3 10 --unit files", "result {}"])
@pytest.mark.parametrize("in_job", [True, False])
def test_x5_calls_in_loops_load_almost_nothing(
    backburner: Program, report: Path, monkeypatch: pytest.MonkeyPatch, call: str, in_job: bool
) -> None:
    if not in_job:
        monkeypatch.delenv("BACKBURNER_REPORT")
    program = (
        f"import sys; from backburner.cli import main; sys.argv = ['backburner', *{call.split()}];"
        "main(); print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    loaded = set(done.stdout.split())
    assert "backburner.cli.inside" in loaded
    slow = {"asyncio", "typer", "typing", "dataclasses", "pathlib", "contextlib", "ctypes"}
    assert not slow & loaded
    ours = {name for name in loaded if name.startswith("backburner.")}
    assert ours <= {
        "backburner.cli",
        "backburner.cli.inside",
        "backburner.work",
        "backburner.work.reporting",
    }


words = st.sampled_from(
    ["3", "10", "0", "1.5", ".5", "5.", "007", "x", "", "-1", "--unit", "files", "--label=a=b"]
)


@given(st.lists(words, max_size=5))
@example(["3", "10", "--unit", "files", "--label", "x"])
def test_x5_what_is_read_quickly_is_what_typer_reads(argv: list[str]) -> None:
    """Where the quick reader understands a call, the whole program says the same."""
    quick = inside._progress(argv)  # pyright: ignore[reportPrivateUsage]
    if quick is None:
        return
    from backburner.cli.program import build

    answer: Any = build("progress")(
        args=["progress", *argv], prog_name="backburner", standalone_mode=False
    )
    given = answer.keywords
    said = json.loads(quick)
    assert said["current"] == float(given["current"])
    assert said.get("total") == (None if given["total"] is None else float(given["total"]))
    assert (said.get("unit"), said.get("label")) == (given["unit"], given["label"])


@given(st.text())
def test_x5_every_text_is_one_line_of_json(text: str) -> None:
    line = inside._status([text])  # pyright: ignore[reportPrivateUsage]
    if line is not None:
        assert "\n" not in line
        assert json.loads(line) == text[:4000]


# In a real task


@pytest.mark.slow
def test_x5_a_question_is_seen_in_ls_and_show_and_answered_with_send(
    backburner: Program, golden: Golden, tmp_path: Path
) -> None:
    program = " ".join(COMMAND)
    (tmp_path / "log.txt").write_text("x" * 2000)
    line = (
        f"{program} status building; {program} artifact {tmp_path}/log.txt;"
        f" {program} result '[1, 2]'; {program} ask 'Deploy to production?'"
    )
    task = backburner("run", "--title", "deploy", "--", line).id
    wait_until(lambda: "asks: " in backburner("ls").out)
    golden.check("ls-asks", backburner("ls").out)
    document = backburner("show", "--json", task).json
    (question,) = document["questions"]
    assert document["question"] == question
    text = backburner("show", task).out
    assert f"asks      Deploy to production? ({question['id']}, " in text
    assert "artifact  log.txt, " in text
    assert "result    [1, 2]" in text
    done = backburner("send", task, "yes", "--json")
    assert done.json == {"task": task, "sent": "answer", "question": question["id"]}
    assert backburner("wait", task).code == 0
    assert backburner("logs", task).out == "yes\n"
