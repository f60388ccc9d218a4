"""`stop`: politely or not, one or all, and what has ended already."""

import threading

import psutil
import pytest

from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.waiting import wait_until


@pytest.mark.slow
def test_a4_x2_stop_ends_the_whole_tree(backburner: Program, golden: Golden) -> None:
    line = "setsid sleep 61 & env -i setsid sleep 62 & (sleep 63 &) ; sleep 64"
    backburner("run", "--id", "tree", "--title", "a tree", "--", line)

    def everything() -> list[int] | None:
        processes = backburner("show", "--json", "tree").json["processes"]
        sleeping = {each["command"] for each in processes}
        there = {f"sleep {number}" for number in (61, 62, 63, 64)} <= sleeping
        return [each["pid"] for each in processes] if there else None

    pids = wait_until(everything)
    stopped = backburner("stop", "tree")
    assert stopped.code == 0
    golden.check("stop", f"{stopped.out}{stopped.err}")
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


@pytest.mark.slow
def test_stop_by_force_leaves_no_grace(backburner: Program) -> None:
    deaf = "trap '' TERM; echo deaf; while :; do sleep 1; done"
    backburner("run", "--id", "deaf", "--", deaf)
    wait_until(lambda: backburner("logs", "deaf").out)
    stopped = backburner("stop", "--force", "--json", "deaf")
    assert (stopped.code, stopped.json["state"]) == (0, "canceled")
    events = backburner("show", "--json", "deaf").json["events"]
    assert [event["data"] for event in events if event["kind"] == "stop_requested"] == [
        {"grace_s": 0.0}
    ]


@pytest.mark.slow
def test_stop_kills_after_the_grace(backburner: Program) -> None:
    deaf = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"
    backburner("run", "--id", "deaf", "--", deaf)
    wait_until(lambda: backburner("logs", "deaf").out)
    assert backburner("stop", "--grace", "200ms", "deaf").out == "deaf canceled\n"


@pytest.mark.slow
def test_a4_what_has_ended_is_left_as_it_is(backburner: Program) -> None:
    backburner("run", "--id", "done", "--wait", "--", "true")
    backburner("run", "--id", "failed", "--wait", "--", "exit 3")
    again = backburner("stop", "done", "failed", "done")
    assert again.code == 0
    assert again.out == "done succeeded\nfailed failed\n"
    assert "true (done) was not running: it finished" in again.err
    assert "exit 3 (failed) was not running: it failed: exit code 3" in again.err
    assert backburner("wait", "failed").code == 3


@pytest.mark.slow
def test_an_unknown_id_does_not_save_the_others(backburner: Program) -> None:
    backburner("run", "--id", "known", "--", "sleep 60")
    mixed = backburner("stop", "unknown", "known")
    assert mixed.code == 3
    assert mixed.out == "known canceled\n"
    assert "no task 'unknown'" in mixed.err


@pytest.mark.slow
def test_stop_all_is_for_the_session(backburner: Program) -> None:
    ids = {backburner("run", "--", "sleep 60").id for _ in range(2)}
    other = backburner("run", "--session", "other", "--", "sleep 60").id
    stopped = backburner("stop", "--all")
    assert stopped.code == 0
    assert {tuple(line.split()) for line in stopped.out.splitlines()} == {
        (each, "canceled") for each in ids
    }
    assert backburner("stop", "--all", "--json").json == []
    assert backburner("stop", "--session", "other", other).code == 0


@pytest.mark.slow
def test_a3_a_stop_holds_when_nobody_waits_for_it(backburner: Program) -> None:
    deaf = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"
    backburner("run", "--id", "deaf", "--", deaf)
    wait_until(lambda: backburner("logs", "deaf").out)
    with backburner.started("stop", "--grace", "10", "deaf") as running:
        wait_until(lambda: "stopping" in backburner("ls").out)
        assert running.interrupt().code == 130
    assert backburner("wait", "deaf").code == 6


@pytest.mark.slow
def test_c3_stop_asks_another_session_only_where_it_is_told_to(backburner: Program) -> None:
    task = backburner("run", "--session", "theirs", "--", "sleep 60").id
    assert backburner("stop", task).code == 3, "not found, as what belongs to somebody else"
    assert backburner("stop", "--ask", "bg_0000000000000000").code == 3
    assert backburner("stop", "--ask", "--all").code == 2

    def answer(text: str) -> None:
        def question() -> str | None:
            signals = backburner("signals", "--session", "theirs", "--json").json
            asked = [each for each in signals if each["state"] == "pending"]
            return asked[0]["data"]["question"] if asked else None

        name = wait_until(question)
        backburner("send", "--session", "theirs", "--question", name, task, text)

    for text, code in (("no", 4), ("yes", 0)):
        answering = threading.Thread(target=answer, args=(text,))
        answering.start()
        stopped = backburner("stop", "--ask", "--force", task)
        answering.join()
        assert stopped.code == code
    assert stopped.out == f"{task} canceled\n"
