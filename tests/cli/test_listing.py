"""`ls`: what is listed, in what form, for whom."""

from pathlib import Path

import pytest

from backburner import Backburner
from tests.cli.golden import Golden
from tests.cli.program import Program
from tests.faults.record import set_all_back
from tests.waiting import wait_until


@pytest.mark.slow
def test_ls_as_a_person_sees_it(backburner: Program, golden: Golden, home: Path) -> None:
    backburner("run", "--title", "ends well", "--wait", "--", "true")
    backburner("run", "--wait", "--", "echo no; exit 3")
    backburner("run", "--title", "never begins", "--cwd", "/nowhere", "--", "true")
    backburner("run", "--title", "too long", "--max-runtime", "0.1", "--wait", "--", "sleep 60")
    backburner("run", "--title", "stopped", "--id", "a-name-of-my-own", "--", "sleep 60")
    wait_until(lambda: backburner("ls", "-q", "--state", "running").out)
    backburner("stop", "a-name-of-my-own")
    backburner("run", "--title", "evil \x1b[31m\x1b]0;title\x07 日本語", "--", "sleep 60")
    wait_until(lambda: backburner("ls", "-q", "--state", "running").out)
    golden.check("ls", backburner("ls").out)
    set_all_back(home, 10)  # ages are as wide from now on, and what is cut depends on that
    with backburner.in_terminal("ls", columns=60) as terminal:
        golden.check("ls-terminal", terminal.read_to_end())
    golden.check("ls-all-sessions", backburner("ls", "--all-sessions").out)
    backburner("stop", "--all")


def test_an_empty_list_is_a_sentence(backburner: Program, golden: Golden) -> None:
    for arguments in (["ls"], ["ls", "--state", "failed"], ["ls", "--all-sessions"]):
        empty = backburner(*arguments)
        assert (empty.code, empty.out) == (0, "")
        golden.check("_".join(["empty", *arguments]), empty.err)
    quiet = backburner("ls", "-q")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    assert backburner("ls", "--json").json == []
    assert backburner("ls", "--json", "-a").json == []


@pytest.mark.slow
def test_what_is_listed(backburner: Program) -> None:
    ids = [backburner("run", "--cwd", "/nowhere", "--", "true").out.strip() for _ in range(3)]
    other = backburner("run", "--session", "other", "--", "true").id
    newest_first = ids[::-1]
    assert backburner("ls", "-q").out.split() == newest_first
    assert backburner("ls", "-aq").out.split() == newest_first
    assert [task["id"] for task in backburner("ls", "--json").json] == newest_first
    assert backburner("ls", "-q", "--session", "other").out.split() == [other]
    assert backburner("ls", "-q", "--all-sessions").out.split() == [other, *newest_first]
    assert backburner("ls", "-q", "--state", "failed").out.split() == newest_first
    assert backburner("ls", "-q", "--state", "running").out == ""


@pytest.mark.slow
async def test_active_tasks_are_listed_however_old_they_are(backburner: Program) -> None:
    oldest = backburner("run", "--", "sleep 60").id
    async with Backburner.open() as opened:
        session = opened.session("test")
        ended = [await session.run("true", cwd="/nowhere") for _ in range(51)]
    first = ended[0].id
    listed = backburner("ls")
    assert oldest in listed.out
    assert first not in listed.out
    assert len(listed.out.splitlines()) == 1 + 50 + 1
    assert listed.err == "backburner: the newest 50 are shown; -a shows all\n"
    everything = backburner("ls", "-a")
    assert first in everything.out
    assert len(everything.out.splitlines()) == 1 + 52
    backburner("stop", "--all")


@pytest.mark.slow
def test_watch_prints_changed_tasks_as_json_lines(backburner: Program) -> None:
    before = backburner("run", "--cwd", "/nowhere", "--", "true").out.strip()
    with backburner.started("ls", "--watch", "--json") as running:
        running.read_until(before)
        after = backburner("run", "--wait", "--", "exit 4")
        assert after.code == 4
        running.read_until('"exit_code": 4')
        hidden = backburner("run", "--session", "other", "--wait", "--", "exit 5")
        assert hidden.code == 5
        seen = backburner("run", "--wait", "--", "exit 6")
        assert seen.code == 6
        running.read_until('"exit_code": 6')
        ended = running.interrupt()
    assert ended.code == 130
    assert ended.err == ""
    tasks = ended.json_lines
    assert tasks[0]["id"] == before
    assert {task["session"] for task in tasks} == {"test"}
    assert {task["exit_code"] for task in tasks} == {None, 4, 6}


@pytest.mark.slow
def test_watch_draws_anew_when_something_changes(backburner: Program) -> None:
    with backburner.in_terminal("ls", "--watch", columns=80, lines=10) as terminal:
        terminal.read_until("no tasks in session 'test'")
        backburner("run", "--title", "newcomer", "--", "sleep 60")
        terminal.read_until("newcomer")
        terminal.read_until("running")
        terminal.resize(columns=20, lines=5)
        backburner("stop", "--all")
        terminal.resize(columns=100, lines=10)
        terminal.read_until("canceled")
        assert terminal.interrupt() == 130
        shown = terminal.read_until("\x1b[?1049l")
    assert shown.startswith("\x1b[?1049h")
    assert "Traceback" not in shown
