"""X10: the address takes the place of the home in every command, and tells nobody its password."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from backburner.work.log.bounds import LogBounds
from tests.cli.program import COMMAND, Program, Result
from tests.nodes.conftest import NO_RECORD, NewWorker
from tests.nodes.workers import WorkerProcess
from tests.nursery import Nursery
from tests.store.postgres.test_database import run
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow]

PASSWORD = "hunter2"
PROGRAM = " ".join(COMMAND)


class Careful(Program):
    """The program, of which no run may show the password."""

    def __call__(self, *arguments: str, stdin: str = "", privileged: bool = True) -> Result:
        result = super().__call__(*arguments, stdin=stdin, privileged=privileged)
        assert PASSWORD not in result.out + result.err, arguments
        assert "Traceback" not in result.err, result.err
        return result


@pytest.fixture
def backburner(
    home: Path, address: str, nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> Careful:
    monkeypatch.setenv("XDG_STATE_HOME", str(home))
    monkeypatch.setenv("BACKBURNER_HOME", address.replace("test@", f"test:{PASSWORD}@"))
    return Careful(nursery)


def test_x10_a_task_from_its_start_to_the_last_trace(
    backburner: Careful, new_worker: NewWorker
) -> None:
    new_worker()
    task = backburner("run", "--title", "first", "--", "echo out; echo bad >&2; exit 3").id
    assert backburner("wait", task).code == 3
    assert backburner("logs", task).out == "out\nbad\n"
    assert backburner("logs", "--since", "1h", "-n", "1", task).out == "bad\n"
    assert backburner("ls", "-q").out == f"{task}\n"
    (listed,) = backburner("ls", "--json").json
    assert listed["output"] == {"bytes": 8, "dropped_bytes": 0, "cursor": "1.8"}
    assert backburner("show", "--json", task).json["exit_code"] == 3
    assert "exit code 3" in backburner("show", task).out
    assert "first" in backburner("ls").out
    (told,) = backburner("signals", "--ack", "--json").json
    assert (told["task"], told["kind"]) == (task, "failed")
    again = backburner("rerun", task).id
    assert backburner("wait", again).code == 3
    assert backburner("completion", "--candidates", "tasks", "--", again[:8]).out.startswith(again)
    assert backburner("stop", again).out == f"{again} failed\n"
    assert backburner("prune", "--older-than", "0").out.startswith("2 tasks removed")
    assert backburner("ls").err == "backburner: no tasks in session 'test'\n"


def test_x10_what_runs_is_followed_and_stopped_from_anywhere(
    backburner: Careful, new_worker: NewWorker, tmp_path: Path
) -> None:
    new_worker()
    command = f"echo first; until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo second; sleep 600"
    task = backburner("run", "--", command).id
    with backburner.started("logs", "-f", task) as following:
        following.read_until("first")
        (tmp_path / "go").touch()
        following.read_until("second")
        # How much there is, is known without reading it.
        assert backburner("ls", "--json").json[0]["output"]["bytes"] == 13
        assert backburner("stop", task).out == f"{task} canceled\n"
        assert following.end().code == 0


def test_e6_who_follows_a_task_with_many_attempts_hears_each_and_the_record_keeps_one(
    backburner: Careful, new_worker: NewWorker, tmp_path: Path, address: str
) -> None:
    new_worker()
    command = (
        f"echo x >> {tmp_path}/tries; n=$(wc -l < {tmp_path}/tries); yes $n | head -c 4000000;"
        f" echo; echo try $n; until [ -e {tmp_path}/go$n ]; do sleep 0.05; done; [ $n = 3 ]"
    )
    task = backburner("run", "--retries", "2", "--", command).id
    with backburner.started("logs", "-f", task) as following:
        for attempt in (1, 2, 3):
            following.read_until(f"try {attempt}")
            ((held, last),) = run(
                address,
                "SELECT sum(length(data))::bigint, max(attempt) FROM mirror_piece",
            )
            assert last == attempt
            assert 0 < int(str(held)) <= LogBounds().most + 2 * 64 * 1024
            (tmp_path / f"go{attempt}").touch()
        assert following.end().code == 0
    assert backburner("logs", "-n", "1", task).out == "try 3\n"


def test_x10_lines_schedules_tokens_and_wishes_lie_in_the_record(backburner: Careful) -> None:
    assert backburner("queue", "set", "gpu", "--width", "2").code == 0
    assert backburner("queue", "ls", "--json").json[0]["width"] == 2
    backburner("schedule", "add", "--cron", "0 3 * * *", "--", "true")
    (schedule,) = backburner("schedule", "ls", "--json").json
    assert backburner("schedule", "rm", schedule["schedule_id"]).code == 0
    token = backburner("token", "create", "--label", "laptop", "--json").json
    assert [each["label"] for each in backburner("token", "ls", "--json").json] == ["laptop"]
    assert backburner("token", "revoke", token["id"]).code == 0
    assert backburner("session", "--quiet", "--json").json["told"] == []
    waits = backburner("run", "--queue", "gpu", "--", "true").id
    assert backburner("wait", waits, "--timeout", "0").code == 124
    assert backburner("stop", "--all").out == f"{waits} canceled\n"


def test_x10_what_no_worker_takes_says_what_it_waits_for(
    backburner: Careful, new_worker: NewWorker
) -> None:
    backburner("queue", "set", "lonely", "--width", "1")
    lonely = backburner("run", "--queue", "lonely", "--", "true").id
    anywhere = backburner("run", "--", "true").id
    said = "for a worker of queue lonely, and there is none"
    wait_until(lambda: f"waits {said}" in backburner("ls").out)
    assert said in backburner("show", lonely).out
    assert backburner("show", "--json", lonely).json["wait"]["unserved"] == "lonely"
    assert "for a worker, and there is none" in backburner("show", anywhere).out
    new_worker("--queue", "default", "--queue", "lonely")
    assert backburner("wait", lonely, anywhere).code == 0


def test_x5_input_goes_to_a_command_on_another_machine(
    backburner: Careful, new_worker: NewWorker
) -> None:
    new_worker()
    task = backburner("run", "--stdin", "--", "cat").id
    assert backburner("send", task, "one").code == 0
    assert backburner("send", "--raw", task, "-", stdin="x" * 300_000).code == 0
    assert backburner("send", "--eof", "--json", task).json["sent"] == "eof"
    late = backburner("send", task, "late")
    assert (late.code, "closed" in late.err or "ended" in late.err) == (1, True)
    assert backburner("wait", task).code == 0
    assert backburner("logs", "--raw", task).out == "one\n" + "x" * 300_000
    shell = backburner("run", "--pty", "--", "read line; echo got:$line").id
    refused = backburner("attach", shell)
    assert (refused.code, "another machine" in refused.err) == (1, True)
    assert backburner("send", shell, "this").code == 0
    assert backburner("wait", shell).code == 0
    assert "got:this" in backburner("logs", shell).out


def test_x2_who_asks_something_of_a_machine_that_has_died_is_told_so(
    backburner: Careful, new_worker: NewWorker
) -> None:
    """As soon as it is known; and what nobody knows to have ended is not said to have."""
    worker = new_worker("--dead-after", "4")
    new_worker("--queue", "elsewhere", "--dead-after", "4")  # who judges
    tasks = [backburner("run", "--stdin", "--", "cat").id for _ in range(2)]
    for task in tasks:
        assert backburner("send", task, "one").code == 0
    worker.kill()
    with backburner.started("send", tasks[0], "two") as sending:
        stopped = backburner("stop", tasks[1])
        sent = sending.end()
    assert (stopped.code, stopped.out) == (1, f"{tasks[1]} failed\n")
    assert "nobody knows whether that came to pass" in stopped.err
    assert (sent.code, f"{tasks[0]} has ended" in sent.err) == (1, True), sent.err
    worker.start()  # and ends what still runs there


def test_x5_a_question_is_answered_from_another_machine(
    backburner: Careful, new_worker: NewWorker
) -> None:
    new_worker()
    task = backburner("run", "--", f"{PROGRAM} status busy; {PROGRAM} ask 'which one?'").id
    wait_until(lambda: backburner("ls", "-q", "--state", "input_required").out)
    assert backburner("send", task, "this one").code == 0
    assert backburner("wait", task).code == 0
    assert backburner("logs", task).out == "this one\n"


def test_what_a_job_starts_goes_to_the_record_of_its_worker(
    backburner: Careful, new_worker: NewWorker
) -> None:
    new_worker()
    outer = backburner("run", "--wait", "--", f"{PROGRAM} run --wait -- echo inner")
    assert (outer.code, outer.out) == (0, "inner\n"), outer.err
    assert len(backburner("ls", "--json").json) == 2


def test_d9_a_command_is_not_given_the_password_of_the_record(
    backburner: Careful, address: str, new_worker: NewWorker
) -> None:
    worker = new_worker(
        BACKBURNER_DATABASE=address.replace("test@", f"test:{PASSWORD}@"), PGPASSWORD=PASSWORD
    )
    shown = backburner("run", "--wait", "--", "env")
    assert "BACKBURNER_TASK_ID" in shown.out
    assert "PGPASSWORD" not in shown.out
    inner = backburner("run", "--wait", "--", f"{PROGRAM} run --wait -- echo inner")
    assert (inner.code, inner.out) == (0, "inner\n"), inner.err
    files = [path for path in worker.home.rglob("*") if path.is_file()]
    assert not [path for path in files if PASSWORD.encode() in path.read_bytes()], "on no disk"
    worker.drain()
    assert worker.process.wait(60) == 0
    assert not list(worker.home.glob("record*")), "it goes with the last task"


def test_what_needs_a_folder_says_so(backburner: Careful) -> None:
    refused = backburner("service", "status")
    assert (refused.code, "this record is in a database" in refused.err) == (2, True)
    refused = backburner("prune", "--max-size", "1G")
    assert (refused.code, "hint: prune by age: backburner prune" in refused.err) == (2, True)
    assert "older_than" not in refused.err


def test_a_database_that_is_not_there_is_an_error_in_two_lines(backburner: Careful) -> None:
    nowhere = f"postgresql://test:{PASSWORD}@127.0.0.1:1/none"
    for command in (["ls"], ["run", "--", "true"], ["signals"]):
        result = backburner(command[0], "--home", nowhere, *command[1:])
        assert result.code == 1
        assert "the database cannot be reached" in result.err
        assert result.err.count("\n") == 2
    assert backburner("completion", "--candidates", "tasks", "--home", nowhere, "--", "").out == ""


@pytest.mark.parametrize("wrong", ["test:{}@[/x", "test:a@{}@127.0.0.1:1/x", "test:a/{}@h/x"])
def test_an_address_that_is_none_is_a_mistake_of_the_caller(
    backburner: Careful, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    address = "postgresql://" + wrong.format(PASSWORD)
    for command in ("ls", "run", "doctor", "db check", "serve"):
        rest = ["--", "true"] if command == "run" else []
        refused = backburner(*command.split(), "--home", address, *rest)
        assert refused.code == 2, refused
        assert "is not one" in refused.err
        assert "%40" in refused.err
    assert backburner("worker", "--database", address).code == 2
    mysql = backburner("worker", "--database", address.replace("postgresql:", "mysql:"))
    assert (mysql.code, "is not one of PostgreSQL" in mysql.err) == (2, True)
    assert "postgresql://user@host:5432/database" in mysql.err
    assert backburner("worker", "--database", "postgresql://127.0.0.1:99999/x").code == 2
    assert backburner("worker", address).code == 2, "what typer repeats"
    other = address.replace("postgresql:", "postgresql+psycopg:")
    assert backburner("ls", other).code == 2, "as other libraries spell it"
    monkeypatch.setenv("BACKBURNER_HOME", address)
    assert backburner("ls").code == 2
    unknown = "postgresql://test@127.0.0.1:1/x?frobnicate=1"
    assert backburner("ls", "--home", unknown).code == 2


def test_a_place_for_artifacts_that_nothing_reaches_is_refused_at_once(
    backburner: Careful, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKBURNER_ARTIFACTS", "nosuch://bucket/folder")
    for command in (["run", "--", "true"], ["worker"]):
        refused = backburner(*command)
        assert (refused.code, "nosuch://" in refused.err) == (2, True), refused
        assert "file:///srv/artifacts" in refused.err


def test_x10_a_folder_for_artifacts_that_cannot_be_made_is_told_by_a_worker_at_its_start(
    backburner: Careful, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("BACKBURNER_ARTIFACTS", f"file://{tmp_path}/file/folder")
    refused = backburner("worker")
    assert (refused.code, "cannot be used" in refused.err) == (1, True), refused
    told = {each["check"]: each for each in backburner("doctor", "--json").json}["artifacts"]
    assert (told["level"], "cannot be used" in told["text"]) == ("fail", True)
    monkeypatch.setenv("BACKBURNER_ARTIFACTS", f"file://{tmp_path}/folder")
    told = {each["check"]: each for each in backburner("doctor", "--json").json}["artifacts"]
    assert (told["level"], "can be written to" in told["text"]) == ("ok", True)
    assert not (tmp_path / "folder").exists(), "a doctor leaves nothing"


@pytest.mark.parametrize("secret", [" ", "short"])
@pytest.mark.parametrize("command", ["run -- true", "worker", "serve --port 0", "mcp"])
def test_d9_who_works_with_a_wrong_secret_is_refused_at_its_start(
    backburner: Careful, monkeypatch: pytest.MonkeyPatch, secret: str, command: str
) -> None:
    """A worker would fail each task that is sealed, for good."""
    monkeypatch.setenv("BACKBURNER_SECRET", secret)
    refused = backburner(*command.split())
    assert (refused.code, "BACKBURNER_SECRET" in refused.err) == (2, True), refused


def test_a_password_in_a_command_line_is_not_for_others_to_see(
    home: Path, address: str, new_home: Callable[[], Path]
) -> None:
    with_password = address.replace("test@", f"test:{PASSWORD}@")
    worker = WorkerProcess(address, new_home(), "--database", with_password, forked=False)
    try:
        seen = Path(f"/proc/{worker.process.pid}/cmdline").read_bytes()
    finally:
        worker.leave()
    assert PASSWORD.encode() not in seen
    assert b"--database\0postgresql://test@" in seen


@NO_RECORD
def test_db_migrate_and_check_say_what_they_did_and_found(
    backburner: Careful, address: str
) -> None:
    assert backburner("db", "check").code == 1
    done = backburner("db", "migrate", "--json").json
    assert done["from"] == 0
    assert done["applied"][-1].startswith(f"{done['to']:04}_")
    assert backburner("db", "migrate", "--json").json["applied"] == []
    levels = {each["check"]: each["level"] for each in backburner("db", "check", "--json").json}
    assert set(levels.values()) == {"ok"}
    import psycopg

    backburner("run", "--", "true")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET search_path TO backburner")
        connection.execute("DELETE FROM procrastinate_jobs")
        broken = backburner("db", "check")
        assert broken.code == 1
        assert "1 wait for the engine, which has no job" in broken.out
        connection.execute("UPDATE format SET number = 900")
        assert "newer than this program" in backburner("db", "check").out
        connection.execute("UPDATE format SET oldest = 900")
        refused = backburner("db", "check", "--json")
    assert refused.code == 1
    assert json.loads(refused.out)[0]["level"] == "fail"
