"""E9: what is no schedule is refused at once, with a remedy, and nothing is left of it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from backburner import Backburner, Conflict, Context, NotAllowed, NotFound, UsageError, sync
from backburner.work.agents.protocol import AgentRequest
from tests.faults.homes import waiting_starts
from tests.runtime.schedules import importable

NEVER = "0 0 1 1 *"

BAD: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "no time": ("", "true", {}),
    "four fields": ("* * * *", "true", {}),
    "six fields": ("* * * * * *", "true", {}),
    "no such minute": ("61 * * * *", "true", {}),
    "never comes": ("0 0 */31 * MON#2", "true", {}),
    "the 30th of February": ("0 0 30 2 *", "true", {}),
    "passed": ("2001-01-01T00:00:00Z", "true", {}),
    "passed, as a datetime": (datetime.now(UTC) - timedelta(seconds=5), "true", {}),
    "no offset": ("2101-01-01T00:00:00", "true", {}),
    "naive": (datetime(2101, 1, 1), "true", {}),  # noqa: DTZ001 - that is the mistake
    "no date": ("2101-13-01T00:00:00Z", "true", {}),
    "the end of days": ("9999-12-31T23:59:59Z", "true", {}),
    "a number": (5, "true", {}),
    "zone": (NEVER, "true", {"tz": "Europe/Berln"}),
    "no zone": (NEVER, "true", {"tz": None}),
    "jitter, a text": (NEVER, "true", {"jitter": "soon"}),
    "missed": (NEVER, "true", {"missed": "sometimes"}),
    "overlap": (NEVER, "true", {"overlap": "maybe"}),
    "jitter": (NEVER, "true", {"jitter": -1}),
    "a title that is no text": (NEVER, "true", {"title": 5}),
    "jitter, no number": (NEVER, "true", {"jitter": float("nan")}),
    "run time": (NEVER, "true", {"max_runtime": 0}),
    "id": (NEVER, "true", {"id": "a/b"}),
    "empty command": (NEVER, " ", {}),
    "empty words": (NEVER, [], {}),
    "no words": (NEVER, [1, 2], {}),
    "nothing to do": (NEVER, {}, {}),
    "two things to do": (NEVER, {"command": "true", "ask": "why"}, {}),
    "unknown key": (NEVER, {"command": "true", "shell": "zsh"}, {}),
    "a key of another kind": (NEVER, {"ask": "why", "cwd": "/"}, {}),
    "no folder": (NEVER, {"command": "true", "cwd": "/nowhere"}, {}),
    "no such program": (NEVER, {"command": ["/nowhere/program"]}, {}),
    "environment": (NEVER, {"command": "true", "env": {"A": 1}}, {}),
    "environment, a list": (NEVER, {"command": "true", "env": ["A=1"]}, {}),
    "no reference": (NEVER, {"call": "not a reference"}, {}),
    "arguments": (NEVER, {"call": "a:b", "args": [1]}, {}),
    "no JSON": (NEVER, {"call": "a:b", "args": {"x": object()}}, {}),
    "unknown tool": (NEVER, {"tool": "nothing"}, {}),
    "a tool that did not opt in": (NEVER, {"tool": "plain"}, {}),
    "wrong arguments of a tool": (NEVER, {"tool": "ready", "args": {"y": 1}}, {}),
    "secrets of a tool that is only here": (NEVER, {"tool": "ready", "args": {"token": "s"}}, {}),
    "secrets of a tool": (NEVER, {"tool": "sign_in", "args": {"account": {"token": "s"}}}, {}),
    "secrets of a function": (NEVER, {"call": "a:b", "args": {"x": [{"api_key": "s"}]}}, {}),
    "no prompt": (NEVER, {"ask": ""}, {}),
}


@pytest.mark.parametrize("case", BAD)
async def test_e9_a_mistake_is_refused_and_leaves_nothing(shared_home: Path, case: str) -> None:
    when, spec, options = BAD[case]
    async with Backburner.open(shared_home) as bb:

        @bb.registry.tool
        def plain() -> None:
            """Not for the background."""

        @bb.registry.tool(background=True)
        def ready(token: str = "") -> None:
            """For the background."""

        bb.registry.add(importable.sign_in)
        session = bb.session("mistakes")
        with pytest.raises(UsageError) as refused:
            await session.schedule(when, spec, **options)
        assert str(refused.value)
        assert await session.schedules() == []
    assert waiting_starts(shared_home) == []


async def test_e9_another_sessions_schedule_is_not_found(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        schedule = await bb.session("mine").schedule(NEVER, "true", title="my secret plan")
        for stranger in (bb.session("other"), bb.session("mine", owner="bob")):
            for reference in (schedule.id, schedule.id[:8]):
                with pytest.raises(NotFound) as refused:
                    await stranger.find_schedule(reference)
                assert "plan" not in str(refused.value)
            with pytest.raises(Conflict) as taken:
                await stranger.schedule(NEVER, "false", id=schedule.id)
            assert "plan" not in str(taken.value)
        assert (await bb.session("mine").find_schedule(schedule.id[:8])).id == schedule.id
        await schedule.cancel()


@pytest.mark.parametrize(
    "spec",
    [
        {"tool": "sign_in", "args": {"account": {"password": "hush-hush"}}},
        {"call": "tests.runtime.schedules.importable:write", "args": {"api_key": "hush-hush"}},
    ],
)
async def test_d9_no_secret_waits_on_the_disk_for_a_schedule(
    shared_home: Path, spec: dict[str, Any]
) -> None:
    async with Backburner.open(shared_home) as bb:
        bb.registry.add(importable.sign_in)
        with pytest.raises(UsageError, match="secrets, which are kept nowhere") as refused:
            await bb.session("secret").schedule(NEVER, spec)
        assert "hush-hush" not in str(refused.value)
    for path in shared_home.rglob("*"):
        assert not path.is_file() or b"hush-hush" not in path.read_bytes()


async def test_e9_a_sub_agent_makes_no_schedules(shared_home: Path) -> None:
    """Its session ends with it, and no firing could be told to anybody."""
    async with Backburner.open(shared_home) as bb:

        async def schedule(request: AgentRequest, context: Context) -> str:
            await request.session.schedule(NEVER, request.prompt)
            return "made"

        bb.agent("sly", schedule)
        task = await (await bb.session("agents").ask("true", agent="sly")).wait(30)
        assert task.error is not None
        assert "a sub-agent makes no schedules" in task.error.message
        with pytest.raises(NotAllowed):
            await bb.session(task.id).schedule(NEVER, "true")


async def test_e12_the_same_id_again_is_the_same_schedule(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("again")
        first = await session.schedule(NEVER, "true", id="nightly")
        again = await session.schedule(NEVER, "true", id="nightly")
        assert (first.document()["created"], again.document()["created"]) == (True, False)
        assert waiting_starts(shared_home) == ["nightly"]
        with pytest.raises(Conflict):
            await session.schedule("1 0 1 1 *", "true", id="nightly")
        for other in (
            {"title": "another"},
            {"missed": "skip"},
            {"overlap": "queue"},
            {"jitter": 1},
            {"max_runtime": 1},
        ):
            with pytest.raises(Conflict):
                await session.schedule(NEVER, "true", id="nightly", **cast("Any", other))
        await first.cancel()
        with pytest.raises(Conflict, match="that one is canceled"):
            await session.schedule(NEVER, "true", id="nightly")


async def test_e9_what_has_ended_cannot_go_on(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session("ended")
        schedule = await (await session.schedule(NEVER, "true")).cancel()
        assert (await schedule.cancel()).state == "canceled"
        for change in (schedule.pause, schedule.resume):
            with pytest.raises(Conflict, match="canceled"):
                await change()
        once = await session.schedule(datetime.now(UTC) + timedelta(hours=1), "true")
        await once.pause()
        passed = datetime.now(UTC) - timedelta(hours=1)
        from tests.faults.record import rows

        rows(shared_home, "UPDATE schedule SET at = ? WHERE id = ?", _us(passed), once.id)
        with pytest.raises(Conflict, match="has passed"):
            await once.resume()
        await once.cancel()


def _us(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)


def test_e9_schedules_without_an_event_loop(shared_home: Path) -> None:
    with sync.Backburner.open(shared_home) as bb:
        session = bb.session("sync")
        schedule = session.schedule("30 2 * * *", ["true"], tz="Europe/Berlin", jitter=60)
        assert schedule.document()["cron_expression"] == "30 2 * * *"
        assert [each.id for each in session.schedules()] == [schedule.id]
        assert schedule.pause().state == "paused"
        assert schedule.resume().refresh().state == "active"
        assert schedule.firings() == []
        assert session.find_schedule(schedule.id).cancel().state == "canceled"
