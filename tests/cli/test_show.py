"""`show`: one task on one screen."""

from typing import Any

import pytest

from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.cli.test_run import TASK_KEYS
from tests.waiting import wait_until


@pytest.mark.slow
def test_show_as_a_person_sees_it(backburner: Program, golden: Golden) -> None:
    backburner(
        "run", "--id", "job", "--title", "a job", "--env", "CI=1", "--cwd", "/",
        "--", "seq 1 20; sleep 60; true",
    )  # fmt: skip

    def commands() -> list[str]:
        return [each["command"] for each in backburner("show", "--json", "job").json["processes"]]

    wait_until(lambda: commands()[2:] == ["sleep 60"])
    golden.check("show-running", backburner("show", "job").out)
    backburner("stop", "job")
    golden.check("show-stopped", backburner("show", "job").out)
    backburner("run", "--wait", "--id", "failed", "--cwd", "/", "--", "echo why; exit 3")
    with backburner.in_terminal("show", "failed", columns=60) as terminal:
        golden.check("show-failed-terminal", terminal.read_to_end())
    backburner("run", "--wait", "--id", "late", "--max-runtime", "0.1", "--cwd", "/", "sleep", "60")
    golden.check("show-late", backburner("show", "late").out)
    backburner("signals", "--ack")
    assert "failed, delivered" in backburner("show", "late").out


@pytest.mark.slow
def test_show_as_json(backburner: Program) -> None:
    backburner("run", "--id", "job", "--", "sleep", "60")

    def under_way() -> Any:
        shown = backburner("show", "--json", "job").json
        return (
            shown if [each["command"] for each in shown["processes"]][1:] == ["sleep 60"] else None
        )

    task = wait_until(under_way)
    added = {"command", "machine", "events", "signals", "processes", "questions"}
    assert task.keys() == TASK_KEYS | added
    assert task["command"] == "sleep 60"
    assert [event["kind"] for event in task["events"]] == ["created", "started"]
    assert task["signals"] == []
    first, second = task["processes"]
    assert first["pid"] == task["pid"] == second["parent"]
    assert second["memory_bytes"] > 0
    backburner("stop", "job")
    stopped = backburner("show", "--json", "job").json
    kinds = [event["kind"] for event in stopped["events"]]
    assert kinds[2:] == ["stop_requested", "ending", "finished"]
    assert stopped["processes"] == []
    (signal,) = stopped["signals"]
    assert signal.keys() == {
        "id", "key", "task", "session", "kind", "text", "data", "state", "reason", "channel",
        "tries", "created_at", "delivered_at", "retry_at",
    }  # fmt: skip
    assert (signal["task"], signal["kind"], signal["state"]) == ("job", "canceled", "pending")


@pytest.mark.slow
def test_what_was_left_behind_is_shown(backburner: Program) -> None:
    backburner("run", "--id", "job", "--wait", "--", "setsid sleep 60 >/dev/null 2>&1 &")
    shown = backburner("show", "job").out
    assert "left behind  1 process\n" in shown
    assert "sleep 60" in shown.partition("processes")[2]
    assert "1 left behind" in backburner("ls").out
    assert "1 process that it left behind ended now" in backburner("stop", "job").err
    assert "left behind" not in backburner("ls").out


@pytest.mark.slow
def test_a_prefix_is_enough_if_it_is_the_only_one(backburner: Program) -> None:
    for name in ("build-1", "build-2", "test-1"):
        backburner("run", "--cwd", "/nowhere", "--id", name, "--", "true")
    assert backburner("show", "--json", "te").json["id"] == "test-1"
    ambiguous = backburner("show", "build")
    assert ambiguous.code == 2
    assert "build-2, build-1" in ambiguous.err


@pytest.mark.slow
def test_another_sessions_task_is_not_found(backburner: Program) -> None:
    backburner("run", "--session", "other", "--title", "secret", "--id", "job", "--", "sleep 60")
    for command in ("show", "logs", "wait", "stop", "rerun"):
        refused = backburner(command, "job")
        assert (refused.code, refused.out) == (3, "")
        assert "secret" not in refused.err
    assert backburner("stop", "--all").err == "backburner: nothing is running in session 'test'\n"
    assert backburner("show", "--json", "--session", "other", "job").json["state"] != "canceled"
    assert backburner("stop", "--session", "other", "job").code == 0
