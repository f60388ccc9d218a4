"""E9: schedules that are fired by a real keeper, with what their caller had."""

import json
from pathlib import Path

import pytest

from backburner import Backburner, Kind, LimitReached, Schedule, ScheduleState, State
from backburner.model.home import Home
from backburner.runtime import launches
from backburner.runtime.launches import discard_unneeded
from backburner.work import handover
from tests.faults.homes import waiting_starts
from tests.runtime.schedules import importable
from tests.runtime.schedules.times import expect_since, minutes_ago, soon
from tests.waiting import wait_until_async

pytestmark = pytest.mark.slow  # each waits for the clock

YEARLY = "0 0 1 1 *"


async def test_e9_a_single_time_starts_a_task_with_what_its_caller_had(
    shared_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INHERITED", "of the caller")
    spec = {
        "command": 'echo "$INHERITED, $GIVEN, $MY_TOKEN"; pwd',
        "cwd": str(tmp_path),
        "env": {"GIVEN": "given", "MY_TOKEN": "hush-hush"},
    }
    async with Backburner.open(shared_home) as bb:
        session = bb.session("single")
        schedule = await session.schedule(soon(), spec, title="once")
        document = schedule.document()
        assert document["created"] is True
        assert (document["status"], document["enabled"]) == ("scheduled", True)
        assert (document["schedule_type"], document["cron_expression"]) == ("once", None)
        assert document["next_trigger_at"] == document["scheduled_at"]
        assert (document["timezone"], document["title"]) == ("UTC", "once")
        monkeypatch.delenv("INHERITED")
        await wait_until_async(lambda: has_ended(schedule))
        task = await (await session.task(document["task_id"])).wait(30)
        assert (await task.output()).text == f"of the caller, given, hush-hush\n{tmp_path}\n"
        assert task.document()["links"]["schedule"] == schedule.id
        assert task.record.title == "once"
        assert [signal.task for signal in await session.told()] == [task.id]
        done = (await schedule.refresh()).document()
        assert (done["status"], done["enabled"], done["next_trigger_at"]) == ("done", False, None)
        assert (done["fired"], done["last_task"], done["task_id"]) == (1, task.id, None)
        assert [firing.task for firing in await schedule.firings()] == [task.id]
        assert "hush-hush" not in json.dumps(schedule.record.spec | task.record.spec)
        assert not {schedule.id, task.id} & set(waiting_starts(shared_home))
    assert b"hush-hush" not in (shared_home / "launches").read_bytes()


async def has_ended(schedule: Schedule) -> bool:
    return (await schedule.refresh()).state.ended


async def test_e9_all_that_were_missed_are_made_up_for_in_their_order(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("all")
        line = f"echo $BACKBURNER_TASK_ID >>{tmp_path}/ran"
        schedule = await session.schedule("* * * * *", line, missed="all")
        first = minutes_ago(5)
        await expect_since(bb, schedule, first)
        await wait_until_async(lambda: fired(bb, schedule.id, 5))
        await schedule.cancel()  # before a minute turns
        firings = (await schedule.firings())[::-1]
        assert [firing.nominal_at for firing in firings[:2]] == [first, first + 60_000_000]
        for firing in firings:
            assert firing.task is not None
            await (await session.task(firing.task)).wait(30)
        assert (tmp_path / "ran").read_text().split() == [firing.task for firing in firings]


async def fired(bb: Backburner, schedule_id: str, times: int) -> bool:
    found = await bb.store.schedule(schedule_id)
    return found is not None and found.fired >= times


@pytest.mark.parametrize(("missed", "runs"), [("once", 1), ("skip", 0)])
async def test_e9_missed_firings_follow_the_policy(
    shared_home: Path, missed: str, runs: int
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(missed)
        schedule = await session.schedule("0 0 1 1 *", "true", missed=missed)
        expected = schedule.record.next_at
        await expect_since(bb, schedule, minutes_ago(90))

        async def moved_on() -> bool:
            return (await schedule.refresh()).record.next_at == expected

        await wait_until_async(moved_on)
        assert schedule.record.fired == runs
        assert len(await session.tasks()) == runs
        (firing,) = await schedule.firings()
        assert firing.skipped is (runs == 0)
        await schedule.cancel()


async def test_e9_what_was_paused_was_not_missed(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("paused")
        schedule = await session.schedule(soon(3600), "true")
        await schedule.pause()
        assert (schedule.state, schedule.record.next_at) == (ScheduleState.PAUSED, None)
        yearly = await session.schedule("0 0 1 1 *", "true", missed="all")
        before = yearly.record.next_at
        await yearly.pause()
        await yearly.pause()  # is so already
        await yearly.resume()
        assert (yearly.record.next_at, yearly.record.fired) == (before, 0)
        await yearly.cancel()
        await schedule.cancel()
        assert await session.tasks() == []


async def test_e9_cancel_leaves_running_tasks_alone(shared_home: Path, tmp_path: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("cancel")
        line = f"until test -e {tmp_path}/go; do sleep 0.05; done"
        schedule = await session.schedule("* * * * *", line)
        await expect_since(bb, schedule, minutes_ago(1))
        await wait_until_async(lambda: fired(bb, schedule.id, 1))
        await schedule.cancel()
        assert schedule.state is ScheduleState.CANCELED
        task = await session.task(str((await schedule.refresh()).record.last_task))
        assert not task.state.terminal
        (tmp_path / "go").touch()
        assert (await task.wait(30)).state is State.SUCCEEDED
        assert schedule.id not in waiting_starts(shared_home)


async def test_e9_a_python_function_is_fired(shared_home: Path, tmp_path: Path) -> None:
    spec = {
        "call": "tests.runtime.schedules.importable:write",
        "args": {"path": str(tmp_path / "out"), "text": "hello"},
    }
    async with Backburner.open(shared_home) as bb:
        session = bb.session("python")
        schedule = await session.schedule(soon(), spec)
        task_id = schedule.document()["task_id"]
        await wait_until_async(lambda: has_ended(schedule))
        task = await (await session.task(task_id)).wait(30)
        assert (task.record.kind, task.result) == (Kind.PYTHON, "wrote hello")
    assert (tmp_path / "out").read_text() == "hello\n"


async def test_e9_an_importable_tool_is_fired_by_the_keeper(
    shared_home: Path, tmp_path: Path
) -> None:
    async with Backburner.open(shared_home) as bb:
        bb.registry.add(importable.note_down)
        session = bb.session("tool")
        spec = {"tool": "note_down", "args": {"path": str(tmp_path / "out"), "text": "hello"}}
        schedule = await session.schedule(soon(2), spec)
        assert schedule.document()["tool"] == "note_down"
        task_id = schedule.document()["task_id"]
    async with Backburner.open(shared_home) as bb:  # which does not have the tool
        await wait_until_async(lambda: fired(bb, schedule.id, 1))
        task = await (await bb.session("tool").task(task_id)).wait(30)
        assert (task.record.kind, task.result) == (Kind.TOOL, {"written": "hello"})
    assert (tmp_path / "out").read_text() == "hello\n"


def with_things_of_its_own(home: Path) -> Backburner:
    """An application with a tool and an agent that nobody can import."""
    backburner = Backburner.open(home)

    @backburner.registry.tool(background=True)
    def here(text: str) -> str:
        """Give it back."""
        return text

    async def answer(prompt: str) -> str:
        return f"nothing about {prompt}"

    backburner.agent("nobody", answer)
    return backburner


async def test_e9_what_only_an_application_has_waits_visibly_for_one(shared_home: Path) -> None:
    async with with_things_of_its_own(shared_home) as bb:
        session = bb.session("waits")
        schedule = await session.schedule(YEARLY, {"tool": "here", "args": {"text": "x"}})
        asking = await session.schedule(YEARLY, {"ask": "What is new?", "agent": "nobody"})
    async with Backburner.open(shared_home) as bb:
        session = bb.session("waits")
        for each in (schedule, asking):  # now that nobody is there who could carry them out
            await expect_since(bb, await session.find_schedule(each.id), minutes_ago(2))
            await wait_until_async(lambda each=each: fired(bb, each.id, 1))
            await (await session.find_schedule(each.id)).cancel()
        tasks = {task.record.kind: task for task in await session.tasks()}
        assert {task.state for task in tasks.values()} == {State.QUEUED}
        waits = "waits for an application that has the"
        assert tasks[Kind.TOOL].document()["detail"] == f"{waits} tool here"
        assert tasks[Kind.AGENT].document()["detail"] == f"{waits} agent nobody"
    async with with_things_of_its_own(shared_home) as bb:
        ended = {kind: await bb.session("waits").task(task.id) for kind, task in tasks.items()}
        assert (await ended[Kind.TOOL].wait(30)).result == "x"
        assert ended[Kind.TOOL].record.detail is None
        assert (await ended[Kind.AGENT].wait(30)).result == "nothing about What is new?"


async def test_e8_a_schedule_whose_tasks_are_not_told(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("untold")
        schedule = await session.schedule(soon(), "true", signal_on_completion=False)
        assert schedule.document()["signal_on_completion"] is False
        await wait_until_async(lambda: has_ended(schedule))
        await (await session.task(str(schedule.record.last_task))).wait(30)
        pending = [signal.record.state for signal in await session.told()]
        assert "pending" not in pending


async def test_e9_what_living_schedules_need_is_kept(
    shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long ago it was left; what belongs to nobody goes."""
    monkeypatch.setattr(launches, "YOUNG_S", -1.0)
    async with Backburner.open(shared_home) as bb:
        session = bb.session("kept")
        active = await session.schedule("0 0 1 1 *", "true")
        paused = await (await session.schedule("0 0 1 1 *", "true")).pause()
        canceled = await session.schedule("0 0 1 1 *", "true")
        await bb.store.cancel_schedule(canceled.id, session.scope)  # by one that died then
        await discard_unneeded(bb.store, Home(shared_home))
        left = waiting_starts(shared_home)
        assert active.id in left
        assert paused.id in left
        assert canceled.id not in left
        for schedule in (active, paused):
            await schedule.cancel()
            assert schedule.id not in waiting_starts(shared_home)


async def test_e9_what_a_start_needs_can_be_gone(shared_home: Path) -> None:
    """Somebody has tidied up the home: the firing is a task that failed and says so."""
    async with Backburner.open(shared_home) as bb:
        session = bb.session("gone")
        schedule = await session.schedule(YEARLY, "true")
        handover.discard(Home(shared_home), schedule.id, schedule.record.hand_over)
        await expect_since(bb, schedule, minutes_ago(2))
        await wait_until_async(lambda: fired(bb, schedule.id, 1))
        await schedule.cancel()
        task = await (await session.task(str(schedule.record.last_task))).wait(30)
        assert task.state is State.FAILED
        assert task.error is not None
        assert "make the schedule anew" in task.error.message
        assert Path(task.document()["paths"]["result"]).exists()


async def test_e9_at_most_five_a_session(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("five")
        made = [await session.schedule("0 0 1 1 *", "true") for _ in range(5)]
        before = waiting_starts(shared_home)
        with pytest.raises(LimitReached, match="5 is the limit"):
            await session.schedule("0 0 1 1 *", "true")
        assert waiting_starts(shared_home) == before
        assert [each.id for each in await session.schedules()] == [each.id for each in made]
        for each in made:
            await each.cancel()
