"""A9, D4, D9: what may be done through a handle, whichever method it is."""

import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from backburner import Backburner, BackburnerError, NotAllowed, State, Task, app
from backburner.app.unrecorded import UnrecordedTask
from backburner.model.policy import DRY_RUN, Action
from tests.faults.victims import unique_seconds

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

ACTS = {
    app.Session: {
        "run": Action.START,
        "call": Action.START,
        "spawn": Action.START,
        "ask": Action.START,
        "invoke": Action.START,
        "schedule": Action.SCHEDULE,
        "stop": Action.STOP,
        "end": Action.END,
        "wish": Action.WISH,
    },
    app.Task: {
        "stop": Action.STOP,
        "send": Action.SEND,
        "send_eof": Action.SEND,
        "rerun": Action.START,
    },
    app.Signal: {"ack": Action.TAKE, "resend": Action.SEND},
    app.Schedule: {
        "pause": Action.SCHEDULE,
        "resume": Action.SCHEDULE,
        "cancel": Action.SCHEDULE,
    },
}
"""Everything that changes something, and what that is."""

READS = {
    app.Session: {
        "task", "tasks", "told", "wished", "ended", "schedules", "find_schedule", "toolset",
    },
    app.Task: {
        "refresh", "wait", "questions", "output", "cursor_ago", "events", "document", "artifact",
    },
    app.Signal: {"document"},
    app.Schedule: {"refresh", "firings", "document"},
}  # fmt: skip
"""Everything that changes nothing."""

ASKS_ITSELF = {app.Session: {"signals", "follow_up"}}
"""No coroutines: they ask the policy in their first line, which is tested below."""


@pytest.mark.parametrize("kind", ACTS, ids=lambda kind: kind.__name__)
def test_a9_no_method_of_a_handle_is_forgotten(kind: type[Any]) -> None:
    """One that is new has to be put into one of the lists above, and be marked if it acts."""
    methods = {
        name: method
        for name, method in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }
    marked = {
        name: method.__dict__["action"]
        for name, method in methods.items()
        if "action" in method.__dict__
    }
    assert marked == ACTS[kind]
    assert methods.keys() - marked.keys() == READS[kind] | ASKS_ITSELF.get(kind, set())


def starts(session: app.Session) -> dict[str, Callable[[], Awaitable[object]]]:
    """Every method of a session that acts, called as it would be."""
    return {
        "run": lambda: session.run("touch started"),
        "call": lambda: session.call("os:getcwd"),
        "spawn": lambda: session.spawn("tool", {"password": "hush"}),
        "ask": lambda: session.ask("Summarise"),
        "invoke": lambda: session.invoke("tool"),
        "schedule": lambda: session.schedule("* * * * *", "true"),
        "stop": lambda: session.stop("bg_0000000000000000"),
        "end": session.end,
        "wish": lambda: session.wish(None),
    }


@pytest.mark.parametrize(("mode", "role"), [("plan", "user"), ("normal", "viewer")])
@pytest.mark.parametrize("name", ACTS[app.Session])
async def test_a9_acting_is_refused_in_plan_mode_and_to_viewers(
    shared_home: Path, mode: str, role: str, name: str
) -> None:
    async with Backburner.open(shared_home) as bb:
        session = bb.session(f"refused-{mode}-{name}", mode=mode, role=role)
        call = starts(session)[name]
        with pytest.raises(NotAllowed):
            await call()
        assert await session.tasks() == []
        assert await session.schedules() == []


@pytest.mark.parametrize(("mode", "role"), [("plan", "user"), ("normal", "viewer")])
async def test_a9_looking_is_not_refused(shared_home: Path, mode: str, role: str) -> None:
    async with Backburner.open(shared_home) as bb:
        name = f"looking-{mode}"
        task = await bb.session(name).run(f"echo out; sleep {unique_seconds()}")
        restricted = bb.session(name, mode=mode, role=role)
        (seen,) = await restricted.tasks()
        found = await restricted.task(task.id)
        assert seen.id == found.id == task.id
        await found.refresh()
        assert await found.questions() == []
        await found.output()
        assert found.document()["id"] == task.id
        assert await restricted.told() == []
        for call in (
            lambda: found.stop(force=True),
            lambda: found.send("x"),
            found.send_eof,
            found.rerun,
        ):
            with pytest.raises(NotAllowed):
                await call()
        await task.stop(force=True)
        assert (await found.wait(30)).state is State.CANCELED
        (told,) = await restricted.told()
        with pytest.raises(NotAllowed):
            await told.resend()


async def test_a9_a_viewer_takes_no_signals_and_a_planner_does(shared_home: Path) -> None:
    async with Backburner.open(shared_home) as bb:
        await (await bb.session("taking").run("true")).wait(30)
        viewer = bb.session("taking", role="viewer")
        with pytest.raises(NotAllowed):
            async for _ in viewer.signals():
                pass
        with pytest.raises(NotAllowed):
            viewer.follow_up(print)
        (told,) = await viewer.told()
        with pytest.raises(NotAllowed):
            await told.ack()
        planner = bb.session("taking", mode="plan")
        heard = [await signal.ack() async for signal in planner.signals(follow=False)]
        assert heard == [True]


@pytest.mark.parametrize("name", ["run", "call", "spawn", "ask"])
async def test_d4_in_a_dry_run_nothing_is_started(shared_home: Path, name: str) -> None:
    async with Backburner.open(shared_home) as bb:

        @bb.tool(background=True)
        def tool(password: str) -> str:
            return password

        session = bb.session(f"dry-{name}", mode="dry_run")
        task = await starts(session)[name]()
        assert isinstance(task, UnrecordedTask)
        assert task.id.startswith("bg_")
        assert task.state is State.QUEUED
        document = task.document()
        assert document["detail"].startswith(f"{DRY_RUN} would run: ")
        assert "hush" not in str(document)
        assert await task.wait(timeout=0.001) is task
        assert (await task.refresh()).state is State.QUEUED
        assert (await task.output()).text == ""
        assert [event async for event in task.events()] == []
        assert await task.questions() == []
        assert await task.send("x") is None
        stopped = await task.stop()
        assert (stopped.record.detail or "").startswith(DRY_RUN)
        again = await task.rerun()
        assert again.id != task.id
        assert await session.tasks() == []
        assert await bb.session(f"dry-{name}").tasks() == []


async def test_d4_in_a_dry_run_nothing_is_called_scheduled_ended_or_stopped(
    shared_home: Path,
) -> None:
    async with Backburner.open(shared_home) as bb:
        calls: list[str] = []

        @bb.tool
        def noted(text: str) -> str:
            calls.append(text)
            return text

        real = bb.session("dry")
        task = await real.run(f"sleep {unique_seconds()}")
        dry = bb.session("dry", mode="dry_run")
        called = await dry.invoke("noted", {"text": "x"})
        assert (called.success, called.parked, calls) == (True, False, [])
        assert (called.message or "").startswith(DRY_RUN)
        schedule = await dry.schedule("* * * * *", "true")
        assert schedule.document()["detail"].startswith(DRY_RUN)
        assert await dry.schedules() == []
        await dry.end()
        assert not await dry.ended()
        for stopped in (await dry.stop(task.id), await (await dry.task(task.id)).stop()):
            assert stopped.id == task.id
            assert (stopped.record.detail or "").startswith(f"{DRY_RUN} would stop ")
        assert (await task.refresh()).record.stop is None
        await task.stop(force=True)
        assert isinstance(task, Task)


NONSENSE: dict[str, Callable[[app.Session], Awaitable[object]]] = {
    "no such tool": lambda session: session.spawn("nothing"),
    "not in the background": lambda session: session.spawn("foreground", {"text": "x"}),
    "no arguments": lambda session: session.spawn("background", {}),
    "unknown arguments": lambda session: session.invoke("foreground", {"word": "x"}),
    "no such tool to call": lambda session: session.invoke("nothing"),
    "no cron expression": lambda session: session.schedule("every day", "true"),
    "passed": lambda session: session.schedule("2001-01-01T00:00:00Z", "true"),
    "no zone": lambda session: session.schedule("* * * * *", "true", tz="Europe/Berln"),
    "no such policy": lambda session: session.schedule("* * * * *", "true", missed="maybe"),
    "no work": lambda session: session.schedule("* * * * *", {"tool": "nothing"}),
    "no title": lambda session: session.run("true", title=5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", NONSENSE)
async def test_d4_a_dry_run_refuses_what_would_be_refused(shared_home: Path, what: str) -> None:
    async with Backburner.open(shared_home) as bb:

        @bb.tool(background=True)
        def background(text: str) -> str:
            return text

        @bb.tool
        def foreground(text: str) -> str:
            return text

        errors: list[tuple[type[BackburnerError], str]] = []
        for mode in ("normal", "dry_run"):
            with pytest.raises(BackburnerError) as caught:
                await NONSENSE[what](bb.session("nonsense", mode=mode))
            errors.append((caught.type, str(caught.value)))
        assert errors[0] == errors[1]
