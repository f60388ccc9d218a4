"""`wait`: the task's own code, the first of several, time that is up."""

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.waiting import wait_until


@pytest.mark.slow
def test_wait_exits_with_the_tasks_code(backburner: Program) -> None:
    for name, line in (("good", "true"), ("bad", "exit 3"), ("worse", "exit 4")):
        backburner("run", "--id", name, "--", line)
    backburner("run", "--id", "stopped", "--", "sleep 60")
    backburner("stop", "stopped")
    backburner("run", "--id", "late", "--max-runtime", "0.1", "--", "sleep 60")

    waited = backburner("wait", "good")
    assert (waited.code, waited.out) == (0, "")
    assert waited.err.startswith("backburner: true (good) finished after ")
    assert backburner("wait", "bad").code == 3
    assert backburner("wait", "good", "worse", "bad").code == 4
    assert backburner("wait", "stopped").code == 6
    late = backburner("wait", "late")
    assert late.code == 1
    assert "timed out" in late.err


@pytest.mark.slow
def test_wait_gives_up_when_time_is_up(backburner: Program) -> None:
    backburner("run", "--id", "bad", "--wait", "--", "exit 3")
    backburner("run", "--id", "slow", "--", "sleep 60")
    wait_until(lambda: backburner("ls", "-q", "--state", "running").out)
    up = backburner("wait", "--timeout", "0.2", "slow")
    assert (up.code, up.out) == (124, "")
    assert up.err == "backburner: time is up: sleep 60 (slow) is running\n"
    assert backburner("wait", "--timeout", "100ms", "slow", "bad").code == 124
    assert backburner("wait", "--timeout", "100ms", "bad", "slow").code == 3
    shown = backburner("wait", "--timeout", "0", "--json", "slow")
    assert (shown.code, shown.json["state"]) == (124, "running")
    backburner("stop", "slow")


@pytest.mark.slow
def test_wait_prints_one_document_or_a_list(backburner: Program) -> None:
    backburner("run", "--id", "one", "--", "exit 3")
    backburner("run", "--id", "two", "--", "true")
    alone = backburner("wait", "--json", "one")
    assert (alone.code, alone.json["exit_code"]) == (3, 3)
    both = backburner("wait", "--json", "two", "one")
    assert both.code == 3
    assert [task["id"] for task in both.json] == ["two", "one"]
    assert backburner("wait", "two", "three").code == 3


@pytest.mark.slow
def test_ctrl_c_ends_the_wait_and_not_the_task(backburner: Program, home: Path) -> None:
    backburner("run", "--id", "slow", "--", "sleep 60")
    with backburner.started("wait", "--json", "slow") as running:
        wait_until(lambda: list((home / "wake").glob(f"{running.process.pid}.*")))
        assert running.interrupt().code == 130
    assert backburner("stop", "--json", "slow").json["state"] == "canceled"
