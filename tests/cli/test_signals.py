"""`signals`: looking, following, acknowledging."""

import pytest

from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.waiting import wait_until


@pytest.mark.slow
def test_x1_signals_are_listed_and_acknowledged(backburner: Program, golden: Golden) -> None:
    assert backburner("signals").err == "backburner: no signals in session 'test'\n"
    backburner("run", "--id", "good", "--title", "a good one", "--wait", "--", "true")
    backburner("run", "--id", "bad", "--title", "a bad \x1b[31mone", "--wait", "--", "exit 3")
    backburner("run", "--id", "stopped", "--title", "a stopped one", "--", "sleep 60")
    wait_until(lambda: backburner("ls", "-q", "--state", "running").out)
    backburner("stop", "stopped")
    looked = backburner("signals")
    golden.check("signals", looked.out)
    listed = backburner("signals", "--json").json
    assert [signal["kind"] for signal in listed] == ["completed", "failed", "canceled"]
    assert {signal["state"] for signal in listed} == {"pending"}  # looking takes nothing
    told = backburner("signals", "--ack")
    assert told.err == "backburner: 3 acknowledged\n"
    assert {signal["state"] for signal in backburner("signals", "--json").json} == {"delivered"}
    assert backburner("signals", "--ack").err == "backburner: 0 acknowledged\n"
    assert backburner("show", "--json", "good").json["signal"]["state"] == "delivered"


@pytest.mark.slow
def test_x1_following_only_looks(backburner: Program) -> None:
    backburner("run", "--id", "before", "--wait", "--", "true")
    with backburner.started("signals", "--follow") as running:
        running.read_until("(before) finished")
        backburner("run", "--id", "after", "--wait", "--", "exit 3")
        running.read_until("(after) failed: exit code 3")
        ended = running.interrupt()
    assert (ended.code, ended.err) == (130, "")
    assert len(ended.out.splitlines()) == 2
    states = {signal["state"] for signal in backburner("signals", "--json").json}
    assert states == {"pending"}


@pytest.mark.slow
def test_x1_each_is_told_once_to_whoever_follows_and_acknowledges(backburner: Program) -> None:
    backburner("run", "--id", "before", "--wait", "--", "true")
    with backburner.started("signals", "--follow", "--ack", "--json") as running:
        running.read_until("before:end")
        backburner("run", "--id", "after", "--wait", "--", "true")
        running.read_until("after:end")
        backburner("run", "--session", "other", "--id", "other", "--wait", "--", "true")
        backburner("run", "--id", "last", "--wait", "--", "true")
        running.read_until("last:end")
        ended = running.interrupt()
    told = [signal["task"] for signal in ended.json_lines]
    assert told == ["before", "after", "last"]
    # The last one may have been printed and not yet acknowledged; then it is given back at once.
    signals = backburner("signals", "--json").json
    assert [signal["state"] for signal in signals[:2]] == ["delivered", "delivered"]
    assert signals[2]["state"] in {"pending", "delivered"}


@pytest.mark.slow
def test_x1_what_nobody_could_read_is_given_back(backburner: Program) -> None:
    for name in ("first", "second"):
        backburner("run", "--id", name, "--wait", "--", "true")
    with backburner.started("signals", "--follow", "--ack") as running:
        assert running.process.stdout is not None
        running.process.stdout.close()
        assert running.process.wait() == 141
    states = {signal["state"] for signal in backburner("signals", "--json").json}
    assert states == {"pending"}


@pytest.mark.slow
def test_open_signals_are_listed_however_old_they_are(backburner: Program) -> None:
    backburner("run", "--id", "job", "--cwd", "/nowhere", "--", "true")
    assert [signal["task"] for signal in backburner("signals", "-a", "--json").json] == ["job"]
