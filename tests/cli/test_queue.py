"""`queue`, and the options of `run` that say when a task starts and what it may use (X9)."""

import re
from pathlib import Path

import pytest

from backburner.cli import main
from backburner.cli.commands.queue import VERBS
from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

HOLD = "until test -e {}/go; do sleep 0.05; done"
CONFLICT, NOT_FOUND = 2, 3


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(
    backburner: Program, golden: Golden, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = backburner("queue", verb, "--help")
    assert (shown.code, shown.err) == (0, "")
    for word in ("Examples:", "--home", "--session", "--json"):
        assert word in shown.out
    golden.check(f"help-queue-{verb}", shown.out, exact=True)


def running(backburner: Program, task_id: str) -> bool:
    return backburner("show", task_id, "--json").json["state"] == "running"


@pytest.mark.slow
def test_x9_a_person_sees_the_queues_and_why_a_task_waits(
    backburner: Program, golden: Golden, tmp_path: Path
) -> None:
    line = HOLD.format(tmp_path)
    backburner("queue", "set", "build", "--width", "1")
    backburner("queue", "set", "mail", "--width", "12")
    first = backburner("run", "--queue", "build", "--title", "first", "--", line).id
    wait_until(lambda: running(backburner, first))
    at = ("--cwd", str(tmp_path))
    options = (*at, "--memory", "2G", "--nice", "5", "--cpu-time", "10m", "--retries", "2")
    second = backburner("run", "--queue", "build", "--title", "second", *options, "--", "true").id
    backburner("run", "--queue", "build", "--title", "third", "--", "true")
    after = ("--after", first, "--after", second)
    backburner("run", *after, "--title", "last", "--", "true")
    paused = backburner("queue", "pause", "mail")
    said = f"{paused.err}\n{backburner('queue', 'ls').out}\n{backburner('ls').out}\n"
    golden.check("queue", said + backburner("show", second).out)
    document = backburner("show", second, "--json").json
    assert document["order"]["queue"] == "build"
    assert document["wait"]["place"] == 1
    assert document["allowance"] == {"nice": 5, "memory": 2 << 30, "cpu_time": 600.0}
    queues = backburner("queue", "ls", "--json").json
    assert [queue["name"] for queue in queues] == ["build", "mail"]
    (tmp_path / "go").touch()
    assert backburner("wait", second).code == 0
    backburner("queue", "resume", "mail")
    # How memory is limited depends on the machine.
    how = re.compile(r"for (all together \(cgroup v\d|each process \(RLIMIT_AS)\)")
    golden.check("show-limits", how.sub("for …", backburner("show", second).out))


@pytest.mark.slow
def test_x9_a_person_sees_when_the_next_try_is(backburner: Program, golden: Golden) -> None:
    # It waits longer each time, so at last long enough to be seen on the slowest machine; and never
    # for ten seconds, which would be a column less.
    task = backburner("run", "--retries", "4", "--", "echo trying; exit 3").id

    def waits() -> str | None:
        shown = backburner("ls").out
        return shown if "next try in" in shown else None

    golden.check("ls-next-try", wait_until(waits))
    assert backburner("stop", "--force", task).code == 0


@pytest.mark.slow
def test_x9_a_person_sees_tries_and_their_end(
    backburner: Program, golden: Golden, tmp_path: Path
) -> None:
    at = ("--cwd", str(tmp_path))
    task = backburner("run", *at, "--retries", "1", "--", "echo trying; exit 3").id
    late = backburner("run", *at, "--after", task, "--title", "late", "--", "true").out.strip()
    assert backburner("wait", task, late).code == 3
    golden.check("show-tries", backburner("show", task).out + backburner("show", late).out)
    followed = backburner(
        "run", "--retries", "1", "--wait", "--", "echo $BACKBURNER_ATTEMPT; exit 4"
    )
    assert (followed.code, followed.out) == (4, "1\n2\n")


def test_x9_what_comes_after_a_failure_fails_at_once(backburner: Program) -> None:
    failed = backburner("run", "--cwd", "/nowhere", "--", "true")
    assert failed.code == 1
    task = failed.out.strip()
    after = backburner("run", "--after", task, "--", "true")
    assert after.code == 1
    assert f"{task}, which it was to start after, failed to start" in after.err
    anyway = backburner("run", "--after", task, "--after-failure", "--wait", "--", "echo so what")
    assert (anyway.code, anyway.out) == (0, "so what\n")


def test_x9_mistakes(
    backburner: Program,
    golden: Golden,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert backburner("queue", "set", "build", "--width", "2").code == 0

    def in_process(line: str) -> str:
        monkeypatch.setattr("sys.argv", ["backburner", *line.split()])
        status = main()
        out, err = capsys.readouterr()
        assert out == ""
        return f"$ backburner {line}\n{err}[{status}]\n"

    golden.check(
        "errors-queue",
        "\n".join(
            in_process(line)
            for line in (
                "queue set",
                "queue set build",
                "queue set build --width",
                "queue set build --width 0",
                "queue set build --width -1",
                "queue set build --width two",
                "queue set a/b --width 2",
                "queue frob",
                "queue pause none",
                "queue rm none",
                "run --queue none -- true",
                "run --after none -- true",
                "run --after-failure -- true",
                "run --retries some -- true",
                "run --retries 5000 -- true",
                "run --nice 20 -- true",
                "run --nice very -- true",
                "run --memory lots -- true",
                "run --memory 12 -- true",
                "run --cpu-time 0 -- true",
                "run --cpu-time long -- true",
            )
        ),
        exact=True,
    )
    assert backburner("ls", "-a", "--json").json == []


def test_x9_a_queue_in_use_is_not_removed(backburner: Program, tmp_path: Path) -> None:
    backburner("queue", "set", "build", "--width", "1")
    task = backburner("run", "--queue", "build", "--", HOLD.format(tmp_path)).id
    refused = backburner("queue", "rm", "build")
    assert refused.code == CONFLICT
    assert "is in use" in refused.err
    backburner("stop", "--force", task)
    assert backburner("queue", "rm", "build", "--json").json == {"name": "build", "removed": True}
    assert backburner("queue", "rm", "build").code == NOT_FOUND
    assert "queue set NAME" in backburner("queue", "ls").err
