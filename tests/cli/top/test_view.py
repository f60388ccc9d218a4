"""X8: the live view over real jobs: what it shows, what stands still, what keys do."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from backburner import Backburner, BackburnerError
from backburner.cli.top import outputpane
from backburner.cli.top.listpane import TaskList
from backburner.cli.top.roster import NEWEST, Roster
from backburner.cli.top.upkeep import FLOOR_S
from backburner.model.states import State
from backburner.runtime.election import keeper_pid
from tests.cli.top.driving import shown
from tests.waiting import pause_async, wait_until_async

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

BACKBURNER = f"{sys.executable} -m backburner.cli"


async def test_the_list_is_live(opened: Backburner) -> None:
    async with shown(opened) as view:
        await view.shows("nothing to show")
        task = await opened.session("test").run("echo hello; sleep 60", title="a job")
        await view.shows("● running", "a job", "1 running", task.id[:9], "\n hello")
        await task.stop()
        await view.shows("■ canceled", "stopped after")
        await view.shows_no("1 running")


async def test_the_last_line_of_each_task_is_shown(opened: Backburner, tmp_path: Path) -> None:
    session = opened.session("test")
    wait = f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo; sleep 60"
    await session.run(f"printf 'old\\nfirst \\033[31mred\\033[0m\\n'; {wait}", title="one")
    await (await session.run("echo why >&2; exit 3", title="two")).wait()
    async with shown(opened) as view:
        await view.shows("first red", "why", "✗ failed", "exit 3 after")
        other = await session.run(f"{wait}; true", title="three")
        await view.shows("three")
        (tmp_path / "go").touch()
        await view.shows("first red")  # a blank line says nothing
        await other.stop()


async def test_the_chosen_task_stays_chosen_when_rows_come_and_go(opened: Backburner) -> None:
    session = opened.session("test")
    old = await session.run("echo the output of old; sleep 60", title="old")
    await session.run("true", cwd="/nowhere", title="failed")
    async with shown(opened) as view:
        await view.shows("old", "failed")
        await view.press("down")
        await view.shows("the output of old")
        assert view.chosen.id == old.id
        for number in range(3):
            await session.run("sleep 60", title=f"newcomer {number}")
        await view.shows("newcomer 2")
        assert view.chosen.id == old.id
        await view.press("a")
        await view.shows("active only")
        await view.shows_no("✗ failed")
        assert view.chosen.id == old.id
        await old.stop(force=True)
        await view.shows("■ canceled")  # not active any more, and still looked at
        assert view.chosen.id == old.id
        await view.press("up")
        await session.run("sleep 60", title="one more")
        await view.shows("one more")
        await view.shows_no("■ canceled")
        assert view.chosen.title == "newcomer 0"


async def test_a_list_that_was_scrolled_stands_still(opened: Backburner) -> None:
    session = opened.session("test")
    for number in range(30):
        await session.run("true", cwd="/nowhere", title=f"number {number}")
    async with shown(opened, lines=20) as view:
        await view.shows("number 29")
        await view.press("end")
        before = await view.shows("number 0 ")
        lines = [line for line in before.splitlines() if "number" in line and "──" not in line]
        await session.run("true", cwd="/nowhere", title="number 30")
        await wait_until_async(lambda: view.list.virtual_size.height == 31)
        await view.settle()
        after = [line for line in view.text().splitlines() if "number" in line and "──" not in line]
        assert after == lines
        await view.press("home")
        await view.shows("number 30")


async def test_the_output_follows_only_at_its_end(opened: Backburner, tmp_path: Path) -> None:
    more = f"for n in 1 2; do until [ -e {tmp_path}/$n ]; do sleep 0.05; done; echo more $n; done"
    await opened.session("test").run(f"seq -f 'line %g' 1 100; {more}; sleep 60")
    async with shown(opened, lines=24) as view:
        await view.shows("line 100")
        assert view.pane.following
        (tmp_path / "1").touch()
        await view.shows("more 1")
        await view.press("enter", "pageup")  # the whole screen, and up
        reading = await view.shows("more below: G")
        (tmp_path / "2").touch()
        await wait_until_async(lambda: "more 2" in view.pane.lines)
        await view.settle()
        assert words(view.text()) == words(reading)
        await view.press("G")
        await view.shows("more 2")
        await view.press("escape", "tab", "g")
        await view.shows("more below: G")
        assert view.pane.scroll_offset.y == 0
        await view.press("tab", "J")
        assert view.pane.scroll_offset.y == 1


def words(screen: str) -> list[str]:
    """What is to be read on it, without the scroll bar."""
    return [line.partition("   ")[0] for line in screen.splitlines()[1:]]


async def test_what_is_redrawn_is_shown_as_it_would_look_in_the_end(opened: Backburner) -> None:
    await opened.session("test").run("printf 'done 1 %%\\rdone 50 %%\\rdone 99 %%'; sleep 60")
    async with shown(opened) as view:
        await view.shows(" done 99 %")
        assert view.pane.lines == ["done 99 %"]


async def test_output_and_titles_are_text_whatever_is_in_them(opened: Backburner) -> None:
    """No markup, no escape code, no change of direction."""
    hostile = r"[bold]b[/] [link=x]y[/link] \033]0;title\007 \033[2J\033[31mred \302\233 31m [/nope"
    await opened.session("test").run(
        f"printf '{hostile}\\n'; sleep 60", title="[red]t[/red] \u202eevil \x1b[31m[/x"
    )
    async with shown(opened, columns=120) as view:
        await view.shows("[bold]b[/] [link=x]y[/link]  red", "[/nope", "[red]t[/red] evil [/x")
        assert "\x1b]0;" not in view.text(styles=True)
        await view.press("x")
        await view.shows("stop [red]t[/red] evil [/x?")
        await view.press("n")


@pytest.mark.slow
async def test_a_flood_is_bounded_and_keys_are_heard(opened: Backburner) -> None:
    session = opened.session("test")
    for number in range(2):
        await session.run(f"seq -f 'flood {number} %.0f' 1 inf", title=f"flood {number}")
    async with shown(opened) as view:
        await view.shows("flood 1")
        looks, began = view.app.upkeep.looks, time.monotonic()
        await pause_async(2, because="the view may not redraw more often than it says")
        most = (time.monotonic() - began) / FLOOR_S + 1
        assert view.app.upkeep.looks - looks <= most
        await view.press("down")
        await wait_until_async(lambda: any("flood 0 " in line for line in view.pane.lines))
        assert len(view.pane.lines) <= outputpane.LINES + 501
        await view.press("X", "y", "up", "X", "y")
        await wait_until_async(lambda: all_ended(opened))
        await view.shows("■ canceled")


async def all_ended(opened: Backburner) -> bool:
    return all(task.state.terminal for task in await opened.session("test").tasks())


@pytest.mark.slow
async def test_it_costs_nothing_when_nothing_happens(opened: Backburner) -> None:
    await (await opened.session("test").run("echo done", title="ended")).wait()
    async with shown(opened) as view:
        await view.shows("✓ succeeded", "done")
        await pause_async(1.5, because="a first look may be followed by a last one")
        looks = view.app.upkeep.looks
        await pause_async(2.5, because="nothing may happen in it")
        assert view.app.upkeep.looks - looks <= 1  # the keeper may have something to note


async def test_search_looks_at_id_title_and_command(opened: Backburner) -> None:
    session = opened.session("test")
    await session.run("true", cwd="/nowhere", title="Alpha", id="first-one")
    await session.run("echo needle", cwd="/nowhere", title="beta", id="second-one")
    third = await session.run("true", cwd="/nowhere", title="gamma", id="third-one")
    async with shown(opened) as view:
        await view.shows("gamma")
        for text, title in (("alpha", "Alpha"), ("needle", "beta"), ("third-o", "gamma")):
            await view.press("slash")
            await view.type(text)
            await wait_until_async(lambda: view.list.virtual_size.height == 1)
            assert view.chosen.title == title
            await view.press("escape")
            await wait_until_async(lambda: view.list.virtual_size.height == 3)
            assert view.chosen.id == third.id  # back to where the search began
        await view.press("slash")
        await view.type("one bet")
        await view.press("enter")
        await view.shows("/one bet", "Esc end search")
        assert view.chosen.title == "beta"
        await view.press("slash")
        await view.type("zzz")
        await view.shows("nothing to show")
        await view.press("enter", "x", "r", "A", "enter")  # there is nothing to act on
        await view.shows("there is no task")
        await view.press("escape")
        await wait_until_async(lambda: view.list.virtual_size.height == 3)


@pytest.mark.slow
async def test_thousands_of_tasks(opened: Backburner) -> None:
    """Only the newest are listed; a search finds the others."""
    session = opened.session("test")
    await session.run("true", cwd="/nowhere", title="the needle")
    for number in range(NEWEST + 20):
        await session.run("true", cwd="/nowhere", title=f"hay {number}")
    async with shown(opened) as view:
        await view.shows(f"the newest {NEWEST}")
        assert view.list.virtual_size.height == NEWEST
        await view.press("slash")
        await view.type("needle")
        await view.shows("✗ failed     the needle")
        await session.run("true", cwd="/nowhere", title="another needle")
        await view.shows("another needle", "the needle")


async def test_stop_asks_first(opened: Backburner) -> None:
    """X2 through a key: the tree is gone when the view says so."""
    task = await opened.session("test").run("sleep 60", title="a job")
    async with shown(opened) as view:
        await view.shows("● running")
        await view.press("x")
        await view.shows("stop a job?")
        await view.press("q")  # a no, and not the end of the view
        await view.shows("⏎ output")
        assert (await task.refresh()).state is State.RUNNING
        await view.press("x", "y")
        await view.shows("a job was stopped", "■ canceled")
        await view.press("x")
        await view.shows("a job is not running: it was stopped")


async def test_stop_by_force_leaves_no_grace(opened: Backburner) -> None:
    task = await opened.session("test").run(
        "trap '' TERM; echo deaf; while :; do sleep 1; done", title="deaf"
    )
    async with shown(opened) as view:
        await view.shows("\n deaf")
        await view.press("X")
        await view.shows("kill deaf?")
        await view.press("y")
        await view.shows("deaf was stopped")
        stop = (await task.refresh()).record.stop
        assert stop is not None
        assert stop.grace_s == 0


async def test_rerun_asks_and_goes_to_the_new_task(opened: Backburner) -> None:
    first = await opened.session("test").run("echo once more", title="again")
    await first.wait()
    async with shown(opened) as view:
        await view.shows("✓ succeeded")
        await view.press("r")
        await view.shows("run again again?")
        await view.press("y")
        await wait_until_async(lambda: view.list.virtual_size.height == 2)
        await wait_until_async(lambda: view.chosen.id != first.id)
        assert view.chosen.title == "again"


@pytest.mark.slow
async def test_a_question_is_answered(opened: Backburner) -> None:
    """E12, X5: asked by a script in a job, answered by a key."""
    task = await opened.session("test").run(
        f'answer=$({BACKBURNER} ask "Deploy [bold] now?"); echo "got <$answer>"', title="deploy"
    )
    async with shown(opened) as view:
        await view.shows("? asks", "? Deploy [bold] now?", "1 asking", "A answer")
        await view.press("enter")
        await view.type("yes, do")
        await view.shows(" yes, do")
        await view.press("escape")
        await view.shows_no("yes, do")
        assert (await task.refresh()).state is State.INPUT_REQUIRED
        await view.press("A")
        await view.type("no")
        await view.press("enter")
        await view.shows("deploy has its answer")
        await view.shows("got <no>", "✓ succeeded")
        await view.press("A")
        await view.shows("deploy asks nothing")


@pytest.mark.slow
async def test_progress_is_a_bar(opened: Backburner) -> None:
    task = await opened.session("test").run(
        f"{BACKBURNER} progress 5 8 --unit files; sleep 60", title="copies"
    )
    async with shown(opened) as view:
        await view.shows("PROGRESS", " 62 % ██████▎░░░", "5/8 files")
        await task.stop()
        await view.shows_no("PROGRESS")


async def test_all_sessions(opened: Backburner) -> None:
    await opened.session("test").run("true", cwd="/nowhere", title="mine")
    await opened.session("other").run("true", cwd="/nowhere", title="theirs")
    async with shown(opened) as view:
        await view.shows("session test", "mine")
        assert "theirs" not in view.text()
        await view.press("s")
        await view.shows("all sessions", "SESSION", "theirs", "other")
        await view.press("s")
        await view.shows_no("theirs")


async def test_keys_are_explained(opened: Backburner) -> None:
    async with shown(opened) as view:
        await view.press("question_mark")
        await view.shows("╭─ keys", "search in id, title and command", "every job goes on")
        await view.press("q")  # takes the page away, not the view
        await view.shows_no("╭─ keys")
        await view.press("question_mark", "escape")
        await view.resize(40, 10)
        await view.press("question_mark")
        await view.shows("╭─ keys")
        await view.press("end")
        await view.shows("every job goes on")


@pytest.mark.slow
async def test_it_goes_on_when_the_keeper_is_killed(opened: Backburner, tmp_path: Path) -> None:
    """X2: the view shows what the next keeper finds."""
    task = await opened.session("test").run(
        f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; echo over", title="a job"
    )
    async with shown(opened) as view:
        await view.shows("● running")
        pid = keeper_pid(opened.home)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        (tmp_path / "go").touch()
        await view.shows("✓ succeeded", "\n over")
        assert (await task.refresh()).exit_code == 0


@pytest.mark.slow
async def test_who_leaves_while_there_is_news_leaves_well(
    opened: Backburner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read is not shown where there is no list any more."""
    look, reads = Roster.look, asyncio.Event()
    async with shown(opened) as view:
        await view.shows("nothing to show")
        screen = view.app.screen_stack[0]

        async def look_slowly(roster: Roster, *, keep: str | None) -> None:
            reads.set()
            while screen.query(TaskList):
                await pause_async(0, because="the moment in which it is gone is short")
            await look(roster, keep=keep)

        monkeypatch.setattr(Roster, "look", look_slowly)
        view.app.upkeep.look_at_record()
        await asyncio.wait_for(reads.wait(), 60)
        await view.press("q")
    assert view.app.failure is None


@pytest.mark.slow
async def test_what_is_forgotten_leaves_the_list(opened: Backburner) -> None:
    await (await opened.session("test").run("echo gone soon", title="a job")).wait()
    async with shown(opened) as view:
        await view.shows("✓ succeeded", "gone soon")
        await opened.prune(older_than=0)
        await view.shows("nothing to show")
        await view.shows_no("gone soon")


async def test_an_error_of_the_record_ends_the_view_and_is_kept(home: Path) -> None:
    """It is told by the program, when the terminal is the person's again."""
    async with Backburner.open() as backburner:
        async with shown(backburner) as view:
            await view.shows("nothing to show")
            await backburner.store.close()
            view.app.upkeep.look_at_record()
            await wait_until_async(lambda: view.app.failure is not None)
        assert isinstance(view.app.failure, BackburnerError)


async def test_no_colour_where_none_is_wanted(
    opened: Backburner, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened.session("test").run("true", cwd="/nowhere", title="a job")
    async with shown(opened) as view:
        await view.shows("✗ failed")
        assert "31m" in view.text(styles=True)
    monkeypatch.setenv("NO_COLOR", "1")
    async with shown(opened) as view:
        await view.shows("✗ failed")
        assert "31m" not in view.text(styles=True)
    monkeypatch.setenv("NO_COLOR", "")
    async with shown(opened) as view:
        await view.shows("✗ failed")
        assert "31m" in view.text(styles=True)
